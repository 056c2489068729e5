/** Replaces secrets in every text that leaves the process. Runners do not mask comments, outputs and report files. */
export interface Redactor {
  /** A value shorter than 8 characters is ignored: replacing it would damage ordinary words. */
  add(value: string | undefined): void;
  /** Replaces registered secrets, and texts of the shape of a secret. */
  redact(text: string): string;
}

const MIN_SECRET_LENGTH = 8;
const MASK = '***';

/** The keys of values that are secret. A `secret` is often the name of an object. */
const KEY =
  'passw(?:or)?d|passphrase|pwd|token|api[-_]?key|access[-_]?key(?:[-_]?id)?|account[-_]?key|private[-_]?key|client[-_]?secret|secret[-_]?(?:access[-_]?)?key|authorization|signature|cookie';
/** In JSON inside of JSON, an escaped quote ends the value; in JSON, it is a part of it. */
const QUOTED = String.raw`\\"(?:[^"\\]|\\\\(?:\\")?){0,4096}(?:\\")?|"(?:\\.|[^"\\]){0,4096}"?|'[^']{0,4096}'?`;

const VENDORS =
  'k8s-aws-v1\\.|ya29\\.|sha256~|gh[opsru]_|github_pat_|glpat-|xox[a-z]-|[rs]k_(?:live|test)_|npm_|pypi-|hv[bs]\\.|sk-(?:proj|ant|svcacct|admin|or)-|hf_|dckr_pat_|AIza|SG\\.|dop_v1_|shpat_|ATATT|AGE-SECRET-KEY-';

type Shape = readonly [shape: RegExp, masked: string];

/** A secret behind its key. What stands before the value is kept. */
const keyed = (before: string, value: string): Shape => [
  new RegExp(`(${before.replace('KEY', `(?:${KEY})`)})(?:${QUOTED}|${value})`, 'gi'),
  `$1${MASK}`,
];

/** Shapes of secrets that were not registered. The lengths are limited: a hostile text must not make an expression slow. */
const SHAPES: readonly Shape[] = [
  // A block that was cut in the middle matches to the end of the text.
  [/-----BEGIN [A-Z0-9 ]+-----[\s\S]*?(?:-----END [A-Z0-9 ]+-----|$)/g, MASK],
  [/(?<![\w-])eyJ[\w-]{8,}\.[\w-]{8,}(?:\.[\w-]*)?/g, MASK],
  [new RegExp(`\\b(?:${VENDORS})(?=[\\w.=-]{0,200}\\d)[\\w.=-]{16,4096}`, 'g'), MASK],
  // A token has at least 16 characters: "Bearer authentication failed" is none.
  [/\b(Bearer|Basic)\s+[\w.~+/-]{16,}=*/gi, `$1 ${MASK}`],
  [/(\bauthorization\W{1,6}[\w-]+\s+)(?=\S{0,200}\d)[\w.~+/=-]{12,4096}/gi, `$1${MASK}`],
  // A password in a URL may contain a slash; a port is followed by one. A token may stand there alone.
  [/(:\/\/)[^\s/?#@:"'<>]{0,256}:(?!\d{1,5}\/)[^\s?#"'<>]{1,256}@/g, `$1${MASK}@`],
  [/(:\/\/)[^\s/?#@:"'<>]{20,256}@/g, `$1${MASK}@`],
  keyed('--KEY\\s{1,3}', `(?=[^\\s,;"']{0,200}\\d)[^\\s,;"']{6,4096}`),
  keyed('KEY=', `[^\\s,;&"'})\\]]{1,4096}`),
  // After a colon may stand a sentence ("token: expired"): a value there is quoted, or has a digit.
  keyed(`KEY\\\\?["']?:\\s{0,3}`, '(?=[^\\s,;&})\\]]{0,200}\\d)[^\\s,;&})\\]]{8,4096}'),
  [/("auth\\?":\s{0,3}\\?")[\w+/=-]{8,4096}/g, `$1${MASK}`],
  [/([?&](?:sig|X-Amz-Signature)=)[^\s&"']{1,4096}/gi, `$1${MASK}`],
  [/((?:hooks\.slack|discord(?:app)?)\.com\/(?:services|api\/webhooks)\/)[\w/-]+/g, `$1${MASK}`],
  // The secret key stands beside the id of the key.
  [/\b(?:AKIA|ASIA)[0-9A-Z]{16}\b(?:[^\n]{0,40}?(?<![\w+/=])[\w+/]{40}(?![\w+/=]))?/g, MASK],
];

/** Shapes in logs of other programs: a wrongly masked log line does no harm. */
const IN_LOGS: readonly Shape[] = [
  ...SHAPES,
  keyed(`KEY\\\\?["']?\\s{0,3}[:=]\\s{0,3}`, '[^\\s,;&})\\]]{1,4096}'),
  // Names of objects and UIDs have no capital letters.
  [
    /(?<![\w+=-])(?=[\w+=-]{0,200}[A-Z])(?=[\w+=-]{0,200}[a-z])(?=[\w+=-]{0,200}\d)[\w+=-]{32,4096}/g,
    MASK,
  ],
];

export function maskLogSecrets(text: string, shapes = IN_LOGS): string {
  return shapes.reduce((rest, [shape, masked]) => rest.replace(shape, masked), text);
}

/** Masks what has the shape of a secret. A text that is cut has lost it: mask it before. */
export const maskSecretShapes = (text: string): string => maskLogSecrets(text, SHAPES);

/** `onSecret` is called once for every line of a secret: if the runner masked a whole key, ordinary lines would be hidden. */
export function createRedactor(onSecret?: (line: string) => void): Redactor {
  const announced = new Set<string>();
  let secrets: string[] = [];
  return {
    add(value = '') {
      const wellFormed = value.toWellFormed();
      for (const line of linesOf(wellFormed)) {
        if (!announced.has(line)) onSecret?.(line);
        announced.add(line);
      }
      // The longest first: otherwise the rest of one that contains another would stay visible.
      const all = new Set([...secrets, ...formsOf(wellFormed)]);
      secrets = [...all].sort((a, b) => b.length - a.length);
    },
    redact(text) {
      const rest = secrets.reduce((left, secret) => left.replaceAll(secret, MASK), text);
      return maskSecretShapes(rest);
    },
  };
}

/** Without the frame of a PEM file, which texts without secrets have as well. */
function linesOf(value: string): string[] {
  const lines = value.split(/\r?\n/).map((line) => line.trim());
  const isFrame = /^(-----(BEGIN|END) |(Proc-Type|DEK-Info): )/;
  return lines.filter((line) => line.length >= MIN_SECRET_LENGTH && !isFrame.test(line));
}

/** As it is written in JSON, in a URL, in a Basic header and in a Secret object. */
function formsOf(value: string): string[] {
  const forms = linesOf(value);
  for (const whole of [value, value.trim()]) {
    forms.push(whole, JSON.stringify(whole).slice(1, -1), encodeURIComponent(whole));
    if (whole.length >= MIN_SECRET_LENGTH) forms.push(Buffer.from(whole).toString('base64'));
  }
  return forms.filter((form) => form.length >= MIN_SECRET_LENGTH);
}

/** Returns the same value with every text redacted, except the given words of this program. */
export function redactDeep<T>(
  value: T,
  redact: Redactor['redact'],
  fixed: ReadonlySet<string> = new Set(),
): T {
  // The results of many namespaces share most of their texts and objects.
  const known = new Map<unknown, unknown>([...fixed].map((word) => [word, word]));
  const clean = (one: unknown): unknown => {
    if (!known.has(one)) known.set(one, cleanNew(one));
    return known.get(one);
  };
  const cleanNew = (one: unknown): unknown => {
    if (typeof one === 'string') return redact(one);
    if (Array.isArray(one)) return one.map(clean);
    if (typeof one !== 'object' || one === null) return one;
    return Object.fromEntries(Object.entries(one).map(([key, item]) => [key, clean(item)]));
  };
  return clean(value) as T;
}

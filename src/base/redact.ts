/**
 * Replaces secrets in every text that leaves the process. The runner masks log lines, annotations and the
 * summary, but not comments, outputs and report files: those depend on this alone.
 */
export interface Redactor {
  /**
   * Registers a secret. A value shorter than 8 characters is ignored: replacing it would damage ordinary words.
   */
  add(value: string | undefined): void;
  /**
   * Replaces registered secrets, and texts of the shape of a secret: bearer tokens, JWTs, PEM blocks, passwords
   * in URLs, values of keys such as "password", and tokens that begin as those of known vendors.
   */
  redact(text: string): string;
}

const MIN_SECRET_LENGTH = 8;
const MASK = '***';

/** The keys of values that are secret. A `secret` is often the name of an object. */
const KEY =
  'passw(?:or)?d|passphrase|pwd|token|api[-_]?key|access[-_]?key(?:[-_]?id)?|account[-_]?key|private[-_]?key|client[-_]?secret|secret[-_]?(?:access[-_]?)?key|authorization|signature|cookie';
/** In JSON inside of JSON, an escaped quote ends the value; in JSON, it is a part of it. */
const QUOTED = String.raw`\\"(?:[^"\\]|\\\\(?:\\")?){0,4096}(?:\\")?|"(?:\\.|[^"\\]){0,4096}"?|'[^']{0,4096}'?`;

/**
 * Shapes of secrets that were not registered: a server, a plugin, and a controller in a status, an Event or a log may
 * write any text.
 */
const SHAPES: readonly { shape: RegExp; masked: string }[] = [
  // A block that was cut in the middle matches to the end of the text.
  { shape: /-----BEGIN [A-Z0-9 ]+-----[\s\S]*?(?:-----END [A-Z0-9 ]+-----|$)/g, masked: MASK },
  { shape: /(?<![\w-])eyJ[\w-]{8,}\.[\w-]{8,}(?:\.[\w-]*)?/g, masked: MASK },
  { shape: /\bk8s-aws-v1\.[\w-]+/g, masked: MASK },
  { shape: /\bya29\.[\w.-]+/g, masked: MASK },
  { shape: /\bsha256~[\w-]{20,}/g, masked: MASK },
  { shape: /\b(?:gh[opsru]_|github_pat_)\w{20,}/g, masked: MASK },
  // A token has at least 16 characters: "Bearer authentication failed" is none.
  { shape: /\b(Bearer|Basic)\s+[\w.~+/-]{16,}=*/gi, masked: `$1 ${MASK}` },
  {
    shape:
      /(\bauthorization\\?["']?[:=]\s{0,3}\\?["']?(?:token|negotiate|ntlm|digest|oauth|jwt|api-?key|key|bot|splunk|geniekey)\s+)(?=\S{0,200}\d)[\w.~+/=-]{12,4096}/gi,
    masked: `$1${MASK}`,
  },
  // The lengths are limited: the text is hostile and must not make the expression slow.
  // A password may contain a slash; a port is followed by one.
  { shape: /(:\/\/)[^\s/?#@:"'<>]{0,256}:(?!\d{1,5}\/)[^\s?#"'<>]{1,256}@/g, masked: `$1${MASK}@` },
  // A token may stand there alone; the name of a user is shorter.
  { shape: /(:\/\/)[^\s/?#@:"'<>]{20,256}@/g, masked: `$1${MASK}@` },
  {
    shape: new RegExp(
      `(--(?:${KEY})\\s{1,3})(?:${QUOTED}|(?=[^\\s,;"']{0,200}\\d)[^\\s,;"']{6,4096})`,
      'gi',
    ),
    masked: `$1${MASK}`,
  },
  {
    shape: new RegExp(`((?:${KEY})=)(?:${QUOTED}|[^\\s,;&"'})\\]]{1,4096})`, 'gi'),
    masked: `$1${MASK}`,
  },
  // After a colon may stand a sentence ("token: expired"): a value there is quoted, or has a digit.
  {
    shape: new RegExp(
      `((?:${KEY})\\\\?["']?:\\s{0,3})(?:${QUOTED}|(?=[^\\s,;&})\\]]{0,200}\\d)[^\\s,;&})\\]]{8,4096})`,
      'gi',
    ),
    masked: `$1${MASK}`,
  },
  { shape: /("auth\\?":\s{0,3}\\?")[\w+/=-]{8,4096}/g, masked: `$1${MASK}` },
  { shape: /([?&](?:sig|X-Amz-Signature)=)[^\s&"']{1,4096}/gi, masked: `$1${MASK}` },
  {
    shape:
      /\b(?:glpat-|xox[a-z]-|[rs]k_(?:live|test)_|npm_|pypi-|hv[bs]\.|sk-(?:proj|ant|svcacct|admin|or)-|hf_|dckr_pat_|AIza|SG\.|dop_v1_|shpat_|ATATT|AGE-SECRET-KEY-)(?=[\w.=-]{0,200}\d)[\w.=-]{16,4096}/g,
    masked: MASK,
  },
  {
    shape: /\b((?:hooks\.slack|discord(?:app)?)\.com\/(?:services|api\/webhooks)\/)[\w/-]+/g,
    masked: `$1${MASK}`,
  },
  // The secret key stands beside the id of the key.
  {
    shape: /\b(?:AKIA|ASIA)[0-9A-Z]{16}\b(?:[^\n]{0,40}?(?<![\w+/=])[\w+/]{40}(?![\w+/=]))?/g,
    masked: MASK,
  },
];

/**
 * Creates a redactor. `onSecret` is called once for every line of a secret, so that the runner masks single
 * lines. If it masked a whole key, lines that all keys have would be hidden as well.
 */
export function createRedactor(onSecret?: (line: string) => void): Redactor {
  const announced = new Set<string>();
  const secrets = new Map<string, string[]>();
  return {
    add(value = '') {
      const wellFormed = value.toWellFormed();
      for (const line of linesOf(wellFormed)) {
        if (!announced.has(line)) onSecret?.(line);
        announced.add(line);
      }
      for (const form of new Set(formsOf(wellFormed))) {
        const beginning = form.slice(0, MIN_SECRET_LENGTH);
        const others = secrets.get(beginning) ?? [];
        if (others.includes(form)) continue;
        // The longest secret comes first: otherwise the rest of one with the same beginning would stay visible.
        secrets.set(
          beginning,
          [...others, form].sort((a, b) => b.length - a.length),
        );
      }
    },
    redact(text) {
      const clean = maskSecrets(text, secrets);
      return SHAPES.reduce((rest, { shape, masked }) => rest.replace(shape, masked), clean);
    },
  };
}

/**
 * Replaces secrets, which are grouped by their first characters. It uses no regular expression: a secret may be
 * longer than an expression can be.
 */
function maskSecrets(text: string, secrets: ReadonlyMap<string, readonly string[]>): string {
  if (secrets.size === 0) return text;
  let clean = '';
  let end = 0;
  for (let start = 0; start + MIN_SECRET_LENGTH <= text.length; ) {
    const candidates = secrets.get(text.slice(start, start + MIN_SECRET_LENGTH));
    const found = candidates?.find((secret) => text.startsWith(secret, start));
    if (found === undefined) start++;
    else {
      clean += text.slice(end, start) + MASK;
      start += found.length;
      end = start;
    }
  }
  return clean + text.slice(end);
}

/** Returns the lines of a secret without the frame of a PEM file, which texts without secrets have as well. */
function linesOf(value: string): string[] {
  const lines = value.split(/\r?\n/).map((line) => line.trim());
  const isFrame = /^(-----(BEGIN|END) |(Proc-Type|DEK-Info): )/;
  return lines.filter((line) => line.length >= MIN_SECRET_LENGTH && !isFrame.test(line));
}

/** Returns a secret as it is written in JSON, in a URL, in a Basic header and in a Secret object. */
function formsOf(value: string): string[] {
  const forms = linesOf(value);
  for (const whole of [value, value.trim()]) {
    forms.push(whole, JSON.stringify(whole).slice(1, -1), encodeURIComponent(whole));
    if (whole.length >= MIN_SECRET_LENGTH) forms.push(Buffer.from(whole).toString('base64'));
  }
  return forms.filter((form) => form.length >= MIN_SECRET_LENGTH);
}

/** Shapes in logs of other programs, beside those of any text. */
const IN_LOGS: readonly { shape: RegExp; masked: string }[] = [
  {
    shape: new RegExp(
      `((?:${KEY})\\\\?["']?\\s{0,3}[:=]\\s{0,3})(?:${QUOTED}|[^\\s,;&})\\]]{1,4096})`,
      'gi',
    ),
    masked: `$1${MASK}`,
  },
  // Names of objects and UIDs have no capital letters.
  {
    shape:
      /(?<![\w+=-])(?=[\w+=-]{0,200}[A-Z])(?=[\w+=-]{0,200}[a-z])(?=[\w+=-]{0,200}\d)[\w+=-]{32,4096}/g,
    masked: MASK,
  },
];

/**
 * Masks texts in a log that look like a secret. Stricter than `redact`, because a wrongly masked log line does
 * no harm.
 */
export function maskLogSecrets(text: string): string {
  return [...SHAPES, ...IN_LOGS].reduce(
    (clean, { shape, masked }) => clean.replace(shape, masked),
    text,
  );
}

/** Returns the same value with every text redacted, except the given words of this program. */
export function redactDeep<T>(
  value: T,
  redact: Redactor['redact'],
  fixed: ReadonlySet<string> = new Set(),
): T {
  // The results of many namespaces share most of their texts and objects.
  const known = new Map<unknown, unknown>();
  const clean = (one: unknown): unknown => {
    if (typeof one !== 'string' && (typeof one !== 'object' || one === null)) return one;
    const cleaned = known.get(one) ?? cleanNew(one);
    known.set(one, cleaned);
    return cleaned;
  };
  const cleanNew = (one: string | object): unknown => {
    if (typeof one === 'string') return fixed.has(one) ? one : redact(one);
    if (Array.isArray(one)) return one.map(clean);
    return Object.fromEntries(Object.entries(one).map(([key, item]) => [key, clean(item)]));
  };
  return clean(value) as T;
}

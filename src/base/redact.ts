/**
 * Replaces secrets in any text that leaves the process. The runner masks log lines, annotations and
 * the summary, but not comments, outputs and report files: those rely on this alone.
 */
export interface Redactor {
  /** Registers a secret value; shorter than 8 characters is ignored (it would mangle ordinary words). */
  add(value: string | undefined): void;
  /** Also replaces what has the shape of a secret: bearer tokens, JWTs, PEM blocks, URL passwords. */
  redact(text: string): string;
}

const MIN_SECRET_LENGTH = 8;
const MASK = '***';

/** For secrets that nobody registered, for example in what a server or a plugin says. */
const SHAPES: readonly { shape: RegExp; masked: string }[] = [
  // To the end where a text was cut in the middle of a block.
  { shape: /-----BEGIN [A-Z0-9 ]+-----[\s\S]*?(?:-----END [A-Z0-9 ]+-----|$)/g, masked: MASK },
  { shape: /(?<![\w-])eyJ[\w-]{8,}\.[\w-]{8,}(?:\.[\w-]*)?/g, masked: MASK },
  { shape: /\bk8s-aws-v1\.[\w-]+/g, masked: MASK },
  { shape: /\bya29\.[\w.-]+/g, masked: MASK },
  { shape: /\bsha256~[\w-]{20,}/g, masked: MASK },
  { shape: /\b(?:gh[opsru]_|github_pat_)\w{20,}/g, masked: MASK },
  // At least 16 characters: "Bearer authentication failed" is not a token.
  { shape: /\b(Bearer|Basic)\s+[\w.~+/-]{16,}=*/gi, masked: `$1 ${MASK}` },
  // Bounded: texts come from anybody, and may be made to be slow.
  { shape: /(:\/\/)[^\s/?#@:"'<>]{0,256}:[^\s/?#"'<>]{1,256}@/g, masked: `$1${MASK}@` },
];

/**
 * `onSecret` hears every secret once, for the runner's masking: line by line, as a masker that took a
 * whole key would also hide the lines that every key has.
 */
export function createRedactor(onSecret?: (line: string) => void): Redactor {
  const secrets = new Set<string>();
  const heard = new Set<string>();
  let known: RegExp | undefined;
  return {
    add(value = '') {
      for (const line of linesOf(value).filter((each) => !heard.has(each))) {
        heard.add(line);
        onSecret?.(line);
      }
      for (const form of formsOf(value)) secrets.add(form);
      known = undefined;
    },
    redact(text) {
      if (secrets.size > 0) known ??= anyOf(secrets);
      let clean = known === undefined ? text : text.replace(known, MASK);
      for (const { shape, masked } of SHAPES) clean = clean.replace(shape, masked);
      return clean;
    },
  };
}

/** Without what every PEM file has: masking that would mangle texts that hold no secret. */
function linesOf(value: string): string[] {
  const lines = value.split(/\r?\n/).map((line) => line.trim());
  const isFrame = /^(-----(BEGIN|END) |(Proc-Type|DEK-Info): )/;
  return lines.filter((line) => line.length >= MIN_SECRET_LENGTH && !isFrame.test(line));
}

/** How a secret reads inside JSON, a URL, a Basic header or a Secret object. */
function formsOf(value: string): string[] {
  const forms = linesOf(value);
  for (const whole of [value, value.trim()]) {
    forms.push(whole, JSON.stringify(whole).slice(1, -1), encodeURIComponent(whole));
    if (whole.length >= MIN_SECRET_LENGTH) forms.push(Buffer.from(whole).toString('base64'));
  }
  return forms.filter((form) => form.length >= MIN_SECRET_LENGTH);
}

/** Longest first: a secret that begins like another must not leave its tail behind. */
function anyOf(secrets: ReadonlySet<string>): RegExp {
  const longestFirst = [...secrets].sort((a, b) => b.length - a.length);
  return new RegExp(longestFirst.map(RegExp.escape).join('|'), 'g');
}

/** The same value with every text redacted, but for those of these members. */
export function redactDeep<T>(
  value: T,
  redact: Redactor['redact'],
  except: ReadonlySet<string> = new Set(),
): T {
  const clean = (one: unknown): unknown => {
    if (typeof one === 'string') return redact(one);
    if (Array.isArray(one)) return one.map(clean);
    if (typeof one !== 'object' || one === null) return one;
    const entries = Object.entries(one);
    return Object.fromEntries(
      entries.map(([key, item]) => [key, except.has(key) ? item : clean(item)]),
    );
  };
  return clean(value) as T;
}

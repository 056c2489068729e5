import { MIN_SECRET_LENGTH, type Redactor } from '../base/redact.ts';

/** Tells everybody who hides secrets about each one, before it can appear in any text. */
export class Secrets {
  private readonly redactor: Redactor;
  private readonly onSecret: (value: string) => void;
  private readonly known = new Set<string>();

  constructor(redactor: Redactor, onSecret: (value: string) => void = () => undefined) {
    this.redactor = redactor;
    this.onSecret = onSecret;
  }

  add(value: string | undefined): void {
    if (value === undefined || value.length < MIN_SECRET_LENGTH || this.known.has(value)) return;
    this.known.add(value);
    this.redactor.add(value);
    this.onSecret(value);
  }

  /**
   * The lines of a key one by one: a masker that takes the whole text would also hide its first and
   * last line, which every certificate has.
   */
  addPem(pem: string | undefined): void {
    for (const line of (pem ?? '').split(/\r?\n/)) {
      if (!line.startsWith('-----') && !line.includes(':')) this.add(line.trim());
    }
  }
}

/** Finished values; a new object whenever one of them changed. */
export interface Credentials {
  token?: string;
  username?: string;
  password?: string;
  /** PEM. */
  cert?: string;
  key?: string;
}

export interface CredentialSource {
  /** Fresh enough to be sent. Throws an `ActionError` when there are none to be had. */
  current(): Promise<Credentials>;
  /** After a 401 for these: is there something else to try? */
  refresh(rejected: Credentials): Promise<boolean>;
  close(): void;
}

import { homedir } from 'node:os';

/** Containers may run as a user that has neither HOME nor an entry in /etc/passwd. */
export function homeDirectory(): string {
  try {
    return homedir() || '/';
  } catch {
    return '/';
  }
}

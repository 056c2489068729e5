import { rmSync } from 'node:fs';

// A chunk or a module of an earlier build must not survive into the next one.
for (const folder of ['lib', 'dist']) rmSync(folder, { recursive: true, force: true });

/** Before any other import: on an older Node the libraries fail with a stack trace that does not name the reason. */
const OLDEST_NODE = [22, 19] as const;

const [major = 0, minor = 0] = process.versions.node.split('.').map(Number);
if (major < OLDEST_NODE[0] || (major === OLDEST_NODE[0] && minor < OLDEST_NODE[1])) {
  process.stderr.write(
    `namespace-teardown-gate needs Node ${OLDEST_NODE.join('.')} or later and runs on ${process.version}. As an action it needs runner 2.327.1 or later, which brings Node 24.\n`,
  );
  // Nothing is open yet that could be cut off, and nothing must be imported after this.
  process.exit(2);
}

#!/usr/bin/env node
/**
 * The process. Without arguments the Actions runner has started it, with arguments a person has. The
 * rest is loaded only after the version check: on an older Node its syntax or its libraries fail with
 * a stack trace that helps nobody.
 */
const OLDEST_NODE = [22, 19] as const;

async function main(): Promise<number> {
  const [major = 0, minor = 0] = process.versions.node.split('.').map(Number);
  if (major < OLDEST_NODE[0] || (major === OLDEST_NODE[0] && minor < OLDEST_NODE[1])) {
    process.stderr.write(
      `namespace-teardown-gate needs Node ${OLDEST_NODE.join('.')} or later and runs on ${process.version}; as an action it needs runner 2.327.1 or later, which brings Node 24\n`,
    );
    return 2;
  }
  const args = process.argv.slice(2);
  if (args.length > 0) {
    const { runTerminal } = await import('./terminal.ts');
    return runTerminal(args);
  }
  const { runAction } = await import('./action.ts');
  return runAction();
}

// Never process.exit: it would hide what keeps the process alive, and cut off what is being written.
process.exitCode = await main();

import { styleText } from 'node:util';
import type { StepRun } from '../test/stub/runner.ts';
import { parseLogLine } from '../test/stub/step-log.ts';

/** Prints a step's log as the page of a workflow run shows it: groups unfolded, annotations coloured. */
export class StepView {
  readonly #print: (line: string) => void;
  #isInGroup = false;

  constructor(print: (line: string) => void) {
    this.#print = print;
  }

  start(inputs: Readonly<Record<string, string>>): void {
    this.#show('▾ Run namespace-teardown-gate@v1', 'bold');
    this.#show('  with:');
    for (const [name, value] of Object.entries(inputs)) this.#show(`    ${name}: ${value}`);
  }

  end({ exitCode, elapsedMs, outputs }: StepRun): void {
    const isGood = exitCode === 0;
    const seconds = Math.round(elapsedMs / 1_000);
    const verdict = `${isGood ? '✓ passed' : '✗ failed'} after ${seconds} s`;
    this.#print(`  ${styleText(isGood ? 'green' : 'red', verdict)}; outputs among others:`);
    for (const name of [
      'outcome',
      'blocking-finalizer',
      'blocking-resource',
      'blocking-apiservice',
    ]) {
      if (outputs[name]) this.#print(`      ${name}: ${outputs[name]}`);
    }
  }

  line(raw: string): void {
    const line = parseLogLine(raw);
    switch (line.kind) {
      case 'text':
        this.#show(line.text);
        return;
      case 'group':
        this.#show(`▾ ${line.text}`, 'bold');
        this.#isInGroup = true;
        return;
      case 'endgroup':
        this.#isInGroup = false;
        return;
      case 'error':
        this.#annotation('Error', line.text, 'red');
        return;
      case 'warning':
        this.#annotation('Warning', line.text, 'yellow');
        return;
      case 'notice':
        this.#annotation('Notice', line.text, 'cyan');
        return;
      case 'debug':
      case 'command':
        // Step debugging is off, and masks and the like are not shown.
        return;
    }
  }

  #annotation(label: string, text: string, colour: 'red' | 'yellow' | 'cyan'): void {
    for (const [index, line] of text.split('\n').entries()) {
      this.#show(index === 0 ? `${label}: ${line}` : line, colour);
    }
  }

  #show(text: string, style?: 'bold' | 'red' | 'yellow' | 'cyan'): void {
    const indent = this.#isInGroup ? '  ' : '';
    this.#print(`  │ ${indent}${style === undefined ? text : styleText(style, text)}`);
  }
}

import { dump } from 'js-yaml';
import { choicesOf, INPUT_ROWS } from '../../src/inputs.ts';
import { OUTPUTS } from '../../src/outputs.ts';

/** The whole of action.yml, from the tables of inputs and outputs. */
export function actionYml(): string {
  const inputs = INPUT_ROWS.map(([name, row]) => {
    const choices = choicesOf(row).join(', ');
    const fallback = row.fromRunner === undefined ? row.default : `\${{ ${row.fromRunner} }}`;
    return [
      name,
      {
        description: `${row.description}.${choices === '' ? '' : ` One of: ${choices}.`}`,
        ...(fallback === '' ? {} : { default: fallback }),
      },
    ];
  });
  const outputs = Object.entries(OUTPUTS).map(([name, text]) => [
    name,
    { description: `${text}.` },
  ]);
  const sections = [
    {
      name: 'Namespace Teardown Gate',
      description:
        'Waits until a Kubernetes namespace is really gone; when it hangs, says what holds it and who should have acted',
      author: 'namespace-teardown-gate maintainers',
      branding: { icon: 'check-square', color: 'blue' },
    },
    { inputs: Object.fromEntries(inputs) },
    { outputs: Object.fromEntries(outputs) },
    { runs: { using: 'node24', main: 'dist/index.js' } },
  ];
  const head = '# Written by "npm run docs" from src/inputs.ts and src/outputs.ts.\n';
  return head + sections.map((section) => dump(section, { lineWidth: -1 })).join('\n');
}

import {
  FORMATS,
  OPTION_ROWS,
  OWN_FLAGS,
  SHELLS,
  STATS_FORMATS,
  SUBCOMMANDS,
} from './arguments.ts';
import { choicesOf } from './inputs.ts';

const PROGRAM = 'namespace-teardown-gate';
const OPTIONS = [
  ...OPTION_ROWS.map(([name, row]) => ({
    name,
    description: row.brief ?? row.description,
    isFlag: row.default === 'false',
    choices: choicesOf(row),
  })),
  {
    ...{ name: 'format', description: '', isFlag: false },
    choices: [...new Set([...FORMATS, ...STATS_FORMATS])],
  },
  ...OWN_FLAGS.map((name) => ({ name, description: '', isFlag: true, choices: [] })),
];

/** Returns the script that makes the shell complete subcommands, options and their values. */
export function completionScript(shell: (typeof SHELLS)[number]): string {
  switch (shell) {
    case 'bash':
      return bashScript();
    case 'zsh': // has a layer for the completions of bash
      return `autoload -U +X compinit && compinit\nautoload -U +X bashcompinit && bashcompinit\n${bashScript()}`;
    case 'fish':
      return fishScript();
  }
}

/**
 * Returns the script for bash, which takes `--format=text` for three words. A flag takes a value only after `=`:
 * the next word may be a namespace.
 */
function bashScript(): string {
  const choices = OPTIONS.filter((option) => option.choices.length > 0).map(
    ({ name, isFlag, choices }) =>
      `    ${isFlag ? '' : `--${name}|`}--${name}=) list='${choices.join(' ')}' ;;\n`,
  );
  return `_namespace_teardown_gate() {
  local word=\${COMP_WORDS[COMP_CWORD]} before=\${COMP_WORDS[COMP_CWORD-1]} equals= list=
  if [ "$word" = "=" ]; then
    word= equals="="
  elif [ "$before" = "=" ]; then
    before=\${COMP_WORDS[COMP_CWORD-2]} equals="="
  elif [ "$COMP_CWORD" = 1 ]; then
    list='${SUBCOMMANDS.join(' ')}'
  fi
  case $word in -*) list='${OPTIONS.map(({ name }) => `--${name}`).join(' ')}' ;; esac
  case $before$equals in
    completion) list='${SHELLS.join(' ')}' ;;
${choices.join('')}  esac
  COMPREPLY=($(compgen -W "$list" -- "$word"))
}
complete -o default -F _namespace_teardown_gate ${PROGRAM}
`;
}

function fishScript(): string {
  const quoted = (text: string): string => `'${text.replaceAll(/['\\]/g, '\\$&')}'`;
  const lines = OPTIONS.map(({ name, description, isFlag, choices }) => [
    `-l ${name}`,
    ...(isFlag ? [] : choices.length === 0 ? ['-r -F'] : [`-x -a ${quoted(choices.join(' '))}`]),
    ...(description === '' ? [] : [`-d ${quoted(description)}`]),
  ]);
  return [
    ["-n 'not __fish_seen_subcommand_from stats' -f"],
    [`-n __fish_use_subcommand -a ${quoted(SUBCOMMANDS.join(' '))}`],
    [`-n '__fish_seen_subcommand_from completion' -a ${quoted(SHELLS.join(' '))}`],
    ...lines,
  ]
    .map((parts) => `complete -c ${PROGRAM} ${parts.join(' ')}\n`)
    .join('');
}

import type { Chain } from './chains.ts';
import type { Words } from './words.ts';

/** Words of the trade that the author of a change need not know. At most one line each. */
export function termsOf(chains: readonly Chain[]): Words[] {
  const links = chains.flatMap((chain) => chain.links);
  const terms: Words[] = [];
  if (links.some((link) => link.finalizer !== undefined)) {
    terms.push([
      'Finalizer: a mark that keeps an object in the cluster until its controller has cleaned up and taken the mark away.',
    ]);
  }
  if (links.some((link) => link.subject.kind === 'APIService')) {
    terms.push([
      'APIService: the registration of an add-on that serves part of the Kubernetes API. No namespace can go while one of them does not answer.',
    ]);
  }
  if (
    links.some((link) => link.code.startsWith('admission-') || link.code.startsWith('conversion-'))
  ) {
    terms.push(['Webhook: a program that Kubernetes asks before it changes or reads an object.']);
  }
  return terms;
}

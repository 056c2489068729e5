import { registerHooks } from 'node:module';

/**
 * Mermaid's own parser, in Node. It imports DOMPurify, which without a browser is an empty shell that
 * has none of the functions Mermaid calls; cleaning HTML has no part in judging whether a text parses.
 */
const WITHOUT_DOM =
  'data:text/javascript,export default { addHook() {}, sanitize: (text) => text };';

registerHooks({
  resolve: (specifier, context, next) =>
    specifier === 'dompurify' ? { url: WITHOUT_DOM, shortCircuit: true } : next(specifier, context),
});

/** What kind of diagram a text is; rejects with the parser's words when it is none. */
export async function parseDiagram(source: string): Promise<string> {
  const { default: mermaid } = await import('mermaid');
  const result = await mermaid.parse(source);
  return result.diagramType;
}

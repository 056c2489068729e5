import { registerHooks } from 'node:module';

/**
 * A replacement for DOMPurify, which Mermaid's parser imports: without a browser DOMPurify lacks the
 * functions that Mermaid calls. Whether a text parses does not depend on cleaning its HTML.
 */
const WITHOUT_DOM =
  'data:text/javascript,export default { addHook() {}, sanitize: (text) => text };';

registerHooks({
  resolve: (specifier, context, next) =>
    specifier === 'dompurify' ? { url: WITHOUT_DOM, shortCircuit: true } : next(specifier, context),
});

/** Returns the kind of diagram of a text; rejects with the parser's message if it is none. */
export async function parseDiagram(source: string): Promise<string> {
  const { default: mermaid } = await import('mermaid');
  const result = await mermaid.parse(source);
  return result.diagramType;
}

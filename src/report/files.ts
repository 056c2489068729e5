import { renderJunit } from './junit.ts';
import { type RenderContext, renderMarkdownReport } from './markdown.ts';
import { renderMetrics } from './open-metrics.ts';
import { reportJson } from './report-json.ts';
import type { View } from './view.ts';

/** The files of the report folder, in the order in which they are written. */
export const REPORT_FILES: [
  name: string,
  render: (view: View, context: RenderContext) => string,
][] = [
  ['report.json', reportJson],
  ['report.md', renderMarkdownReport],
  ['report.xml', renderJunit],
  ['metrics.prom', renderMetrics],
];

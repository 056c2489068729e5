import { renderJunit } from './junit.ts';
import { type RenderContext, renderMarkdownReport } from './markdown.ts';
import { renderMetrics } from './open-metrics.ts';
import { reportJson } from './report-json.ts';
import type { View } from './view.ts';

type Renderer = (view: View, context: RenderContext) => string;

/** The files of the report folder by name, in the order in which they are written. */
const REPORT_FILES = {
  'report.json': reportJson,
  'report.md': renderMarkdownReport,
  'report.xml': renderJunit,
  'metrics.prom': renderMetrics,
} as const satisfies Record<string, Renderer>;

export type ReportFile = keyof typeof REPORT_FILES;
export const REPORT_FILE_ROWS = Object.entries(REPORT_FILES) as [ReportFile, Renderer][];

/** What force-finalizing did or would do; `report.json` carries it as it is. */
export interface ForceRecord {
  mode: 'plan' | 'objects' | 'namespace';
  actions: { target: string; finalizer: string; result: string }[];
  orphans: { apiVersion: string; kind: string; name: string; uid: string; finalizers: string[] }[];
  refused: { target: string; reason: string }[];
}

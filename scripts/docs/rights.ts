import { CLUSTER_SOURCES, NAMESPACE_SOURCES } from '../../src/model/sources.ts';
import { POINTING_TYPES } from '../../src/observe/pointers.ts';

/** Everything that is listed besides the content of namespaces, as rules of a ClusterRole. */
export function sourceRules(): string {
  const types = [
    ...[...Object.values(CLUSTER_SOURCES), ...Object.values(NAMESPACE_SOURCES)].map(
      ({ type }) => type,
    ),
    ...POINTING_TYPES,
  ];
  const groups = Map.groupBy(types, ({ group }) => group);
  const rules = [...groups].sort().map(([group, own]) => {
    const resources = [...new Set(own.map(({ resource }) => resource))].sort();
    return `- apiGroups: ["${group}"]\n  resources: ${JSON.stringify(resources).replaceAll(',', ', ')}\n  verbs: ["list"]`;
  });
  return `\`\`\`yaml\n${rules.join('\n')}\n\`\`\``;
}

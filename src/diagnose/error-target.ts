/** `secrets`, `leases.coordination.k8s.io` or `secrets "name"`, ending at `end`. */
export function targetBefore(
  text: string,
  end: number,
): { resource: string; group: string; name: string | undefined } | undefined {
  if (end < 1) return undefined;
  let head = text.slice(0, end);
  let name: string | undefined;
  if (head.endsWith('"')) {
    head = head.slice(0, head.endsWith('\\"') ? -2 : -1);
    const open = head.lastIndexOf('"');
    if (open < 0) return undefined;
    name = head.slice(open + 1);
    head = head.slice(0, open).replace(/\\$/, '').trimEnd();
  }
  const type = head.slice(head.lastIndexOf(' ') + 1);
  const dot = type.indexOf('.');
  if (type === '') return undefined;
  return dot < 0
    ? { resource: type, group: '', name }
    : { resource: type.slice(0, dot), group: type.slice(dot + 1), name };
}

import { stringsAt } from '../src/base/json.ts';
import { isHeld, nameOf, type RecordedCluster } from '../test/stub/recorded-cluster.ts';

/** The repair of the cause, which the second act shows for every scenario. */
export function fix(cluster: RecordedCluster, namespace: string): string[] {
  const done: string[] = [];
  for (const name of cluster.deadApiServices()) {
    cluster.removeApiService(name);
    done.push(`kubectl delete apiservice ${name}`);
  }
  for (const { collection, object } of cluster.inside(namespace)) {
    if (!isHeld(object)) continue;
    const finalizers = stringsAt(object, 'metadata', 'finalizers').join(', ');
    cluster.remove(collection, object);
    done.push(`${finalizers} is removed from ${collection.kind} ${nameOf(object)} by its owner`);
  }
  return done;
}

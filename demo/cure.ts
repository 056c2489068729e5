import { arrayAt, stringAt, stringsAt } from '../src/base/json.ts';
import type { Cluster } from '../test/stub/api/cluster.ts';

const API_SERVICES = '/apis/apiregistration.k8s.io/v1/apiservices';

/** The repair of the cause, which the second act shows for every scenario. */
export function fix(cluster: Cluster, namespace: string): string[] {
  const done: string[] = [];
  for (const name of deadApiServices(cluster)) {
    cluster.removeApiService(name);
    done.push(`kubectl delete apiservice ${name}`);
  }
  for (const { path, says } of heldObjects(cluster, namespace)) {
    cluster.removeFinalizers(path);
    done.push(says);
  }
  return done;
}

/** The recorded namespaces whose deletion was requested. */
export function terminatingNamespaces(cluster: Cluster): string[] {
  return cluster.objects
    .list('/api/v1/namespaces', '')
    .filter((object) => stringAt(object, 'metadata', 'deletionTimestamp') !== undefined)
    .map((object) => stringAt(object, 'metadata', 'name') ?? '');
}

function deadApiServices(cluster: Cluster): string[] {
  return cluster.objects
    .list(API_SERVICES, '')
    .filter((service) =>
      arrayAt(service, 'status', 'conditions').some(
        (condition) =>
          stringAt(condition, 'type') === 'Available' && stringAt(condition, 'status') !== 'True',
      ),
    )
    .map((service) => stringAt(service, 'metadata', 'name') ?? '');
}

function heldObjects(cluster: Cluster, namespace: string): { path: string; says: string }[] {
  return cluster.catalogue.types
    .filter((type) => type.namespaced)
    .flatMap((type) =>
      cluster.objects
        .list(type.collection, namespace)
        .filter((object) => stringAt(object, 'metadata', 'deletionTimestamp') !== undefined)
        .filter((object) => stringsAt(object, 'metadata', 'finalizers').length > 0)
        .map((object) => {
          const name = stringAt(object, 'metadata', 'name') ?? '';
          const finalizers = stringsAt(object, 'metadata', 'finalizers').join(', ');
          const prefix = type.collection.slice(0, -type.resource.length);
          return {
            path: `${prefix}namespaces/${namespace}/${type.resource}/${name}`,
            says: `${finalizers} is removed from ${type.kind} ${name} by its owner`,
          };
        }),
    );
}

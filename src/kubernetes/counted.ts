import type { CallOptions, KubernetesApi } from './api.ts';

/** The same API, and how many requests were sent through it: several namespaces share one connection. */
export function counted(api: KubernetesApi): { api: KubernetesApi; requests: () => number } {
  let requests = 0;
  const counting = <T extends CallOptions>(options: T): T => ({
    ...options,
    onRequest: () => {
      requests++;
      options.onRequest?.();
    },
  });
  return {
    requests: () => requests,
    api: {
      target: api.target,
      clockOffsetMs: () => api.clockOffsetMs(),
      get: (path, options = {}) => api.get(path, counting(options)),
      list: (path, options) => api.list(path, counting(options)),
      watch: (path, options) => api.watch(path, counting(options)),
      discover: (options = {}) => api.discover(counting(options)),
      send: (request, options = {}) => api.send(request, counting(options)),
      close: () => api.close(),
    },
  };
}

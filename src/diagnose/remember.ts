/** Returns a function that computes its result once for each object: a run may have a thousand diagnoses. */
export function remember<K extends object, T>(find: (key: K) => T): (key: K) => T {
  const found = new WeakMap<K, T>();
  return (key) => {
    const result = found.get(key) ?? find(key);
    found.set(key, result);
    return result;
  };
}

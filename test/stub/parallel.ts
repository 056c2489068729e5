/** Starts the work in order, at most `most` at once. A failure rejects its own result only. */
export function startAll<Item, Result>(
  items: readonly Item[],
  most: number,
  work: (item: Item) => Promise<Result>,
): Promise<Result>[] {
  const settles: { resolve: (result: Promise<Result>) => void }[] = [];
  const results = items.map(() => new Promise<Result>((resolve) => settles.push({ resolve })));
  for (const result of results) result.catch(() => undefined);
  let next = 0;
  const worker = async (): Promise<void> => {
    for (let index = next++; index < items.length; index = next++) {
      const result = work(items[index] as Item);
      settles[index]?.resolve(result);
      await result.catch(() => undefined);
    }
  };
  for (let index = 0; index < most; index++) void worker();
  return results;
}

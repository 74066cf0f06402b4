/** Which words of an output differ from another output. */

/** Positions of words of `now` outside the longest common subsequence with `old`. */
export function changedWords(old: readonly string[], now: readonly string[]): Set<number> {
  const length = old.map(() => new Array<number>(now.length + 1).fill(0));
  length.push(new Array<number>(now.length + 1).fill(0));
  for (let i = old.length - 1; i >= 0; i--)
    for (let j = now.length - 1; j >= 0; j--)
      length[i]![j] =
        old[i] === now[j] ? length[i + 1]![j + 1]! + 1 : Math.max(length[i + 1]![j]!, length[i]![j + 1]!);
  const changed = new Set<number>();
  let [i, j] = [0, 0];
  while (j < now.length) {
    if (i < old.length && old[i] === now[j]) [i, j] = [i + 1, j + 1];
    else if (i < old.length && length[i + 1]![j]! >= length[i]![j + 1]!) i++;
    else changed.add(j++);
  }
  return changed;
}

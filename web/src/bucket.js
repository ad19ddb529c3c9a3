// Lists by a number, as two flat arrays.

/** Indices by their key, as a function from key to a part of one flat array instead of a list each. */
export function bucket(keys, size) {
  const start = new Int32Array(size + 1);
  for (const key of keys) start[key + 1] += 1;
  for (let i = 0; i < size; i++) start[i + 1] += start[i];
  const place = start.slice();
  const order = new Int32Array(keys.length);
  for (let i = 0; i < keys.length; i++) order[place[keys[i]]++] = i;
  return (key) => order.subarray(start[key], start[key + 1]);
}

/** Put a value into the list of a key. */
export function append(lists, key, value) {
  const list = lists.get(key);
  if (list) list.push(value);
  else lists.set(key, [value]);
}

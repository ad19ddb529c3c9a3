// What the viewer says often, under names that the build shortens: see build.mjs.
export const { Boolean: $Boolean, Int32Array: $Int32Array, Map: $Map, Number: $Number, Set: $Set, String: $String, document: $document } = globalThis;
export const { from: $from } = Array;
export const { abs: $abs, ceil: $ceil, floor: $floor, log10: $log10, max: $max, min: $min, round: $round } = Math;
export const { assign: $assign, entries: $entries, hasOwn: $hasOwn, keys: $keys, values: $values } = Object;
export const { isFinite: $isFinite, isNaN: $isNaN } = Number;
export let $undefined;

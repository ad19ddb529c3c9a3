// How the page takes the report out of itself.

/** The report inside a page: base64 of gzipped JSON. */
export async function unpack(base64) {
  const signs = atob(base64.trim());
  // A loop, for `Uint8Array.from` takes ten times as long over megabytes.
  const bytes = new Uint8Array(signs.length);
  for (let i = 0; i < signs.length; i++) bytes[i] = signs.charCodeAt(i);
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return JSON.parse(await new Response(stream).text());
}

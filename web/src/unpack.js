// How the page takes the report out of itself.

/** The report inside a page: base64 of gzipped JSON. */
export async function unpack(base64) {
  const bytes = Uint8Array.from(atob(base64.trim()), (sign) => sign.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return JSON.parse(await new Response(stream).text());
}

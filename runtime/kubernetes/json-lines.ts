/** JSON values, one a line, out of a byte stream. */

/** A watch's line holds one object, which etcd limits to 1.5 MB. */
const LONGEST_LINE = 8 * 2 ** 20
const NEWLINE = 0x0a

/** A stream that is no sequence of JSON lines: cut off within one, too long a one, or something else entirely. */
export class BadLineError extends Error {
  override readonly name = 'BadLineError'
}

const parsed = (parts: readonly Buffer[]): unknown => {
  const [only] = parts
  const text = (parts.length === 1 && only !== undefined ? only : Buffer.concat(parts)).toString('utf8')
  try {
    return JSON.parse(text)
  } catch (error) {
    // Not its text: objects may hold what no log should.
    throw new BadLineError(`A line of ${text.length} characters is no JSON`, { cause: error })
  }
}

/** The values of a stream's lines. @throws BadLineError and whatever the stream throws */
export async function* jsonLines(chunks: AsyncIterable<Buffer>, longest = LONGEST_LINE): AsyncGenerator {
  let parts: Buffer[] = []
  let length = 0
  for await (const chunk of chunks) {
    let from = 0
    for (let end = chunk.indexOf(NEWLINE); end >= 0; end = chunk.indexOf(NEWLINE, from)) {
      const line = [...parts, chunk.subarray(from, end)]
      from = end + 1
      if (length + chunk.length > longest && line.reduce((sum, part) => sum + part.length, 0) > longest)
        throw new BadLineError(`A line is longer than ${longest} bytes`)
      parts = []
      length = 0
      if (line.some(part => part.length > 0)) yield parsed(line)
    }
    if (from === chunk.length) continue
    parts.push(chunk.subarray(from))
    length += chunk.length - from
    if (length > longest) throw new BadLineError(`A line is longer than ${longest} bytes`)
  }
  if (length > 0) throw new BadLineError(`The stream ended within a line, after ${length} bytes`)
}

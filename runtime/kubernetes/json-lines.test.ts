import assert from 'node:assert/strict'
import fc from 'fast-check'
import { sized } from '../../testkit/full.ts'
import { BadLineError, jsonLines } from './json-lines.ts'

async function* stream(chunks: readonly (Buffer | string)[]): AsyncGenerator<Buffer> {
  for (const chunk of chunks) yield Buffer.from(chunk)
}

const read = async (chunks: readonly (Buffer | string)[], longest?: number): Promise<unknown[]> => {
  const values: unknown[] = []
  for await (const value of jsonLines(stream(chunks), longest)) values.push(value)
  return values
}

describe('jsonLines', () => {
  it('gives the same values however the bytes are cut, multi-byte characters included', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.jsonValue({ maxDepth: 2 })),
        fc.array(fc.nat(), { maxLength: 20 }),
        async (values, cuts) => {
          const bytes = Buffer.from(values.map(value => `${JSON.stringify(value)}\n`).join(''))
          const at = [0, ...cuts.map(cut => cut % (bytes.length + 1)), bytes.length].sort((a, b) => a - b)
          const chunks = at.slice(1).map((end, n) => bytes.subarray(at[n], end))
          assert.deepEqual(await read(chunks), JSON.parse(JSON.stringify(values)))
        },
      ),
      { numRuns: sized(200, 5000) },
    )
  })

  it('takes empty lines for nothing', async () => assert.deepEqual(await read(['\n{}\n\n', '\n1\n']), [{}, 1]))

  it('refuses a line that is no JSON, after what came before, and does not repeat it', async () => {
    const values: unknown[] = []
    await assert.rejects(
      async () => {
        for await (const value of jsonLines(stream(['1\n{"password": hunter2}\n2\n']))) values.push(value)
      },
      (error: unknown) => error instanceof BadLineError && !error.message.includes('hunter2'),
    )
    assert.deepEqual(values, [1])
  })

  it('refuses a stream that ends within a line', async () => {
    await assert.rejects(read(['1\n', '{"a":']), BadLineError)
    // Whole JSON, but nobody knows whether it was all.
    await assert.rejects(read(['1\n', '12']), BadLineError)
  })

  it('refuses a line that is too long, whether its end is in sight or not', async () => {
    assert.deepEqual(await read(['"12345678"\n"1"\n'], 10), ['12345678', '1'])
    await assert.rejects(read(['"123456789"\n'], 10), BadLineError)
    await assert.rejects(read(['"1234', '56789', '012'], 10), BadLineError)
    await assert.rejects(read(['"1234', '567890"\n'], 10), BadLineError)
    assert.deepEqual(await read(['"1234', '5678"\n"1234567"\n"1"\n'], 10), ['12345678', '1234567', '1'])
  })
})

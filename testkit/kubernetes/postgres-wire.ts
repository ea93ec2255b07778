/** The server's side of Postgres' wire protocol, version 3, as far as a stand-in needs it: messages in, messages out. */

/** A message of a client: its type letter, '' for the untyped ones that begin a connection. */
export interface WireMessage {
  readonly type: string
  readonly body: Buffer
}

/** A column of an answer; only these types are ever answered. */
export interface Column {
  readonly name: string
  readonly type: 'text' | 'int4'
}

const OIDS = { text: 25, int4: 23 } as const

/** Cuts what comes into messages. */
export class WireReader {
  #rest: Buffer = Buffer.alloc(0)
  /** Whether the next message has no type: the first one of a connection, and of a TLS connection. */
  untyped = true;

  *read(chunk: Buffer): Generator<WireMessage> {
    this.#rest = Buffer.concat([this.#rest, chunk])
    for (;;) {
      const head = this.untyped ? 0 : 1
      if (this.#rest.length < head + 4) return
      const length = this.#rest.readInt32BE(head)
      if (this.#rest.length < head + length) return
      const type = this.untyped ? '' : String.fromCharCode(this.#rest[0]!)
      const body = this.#rest.subarray(head + 4, head + length)
      this.#rest = this.#rest.subarray(head + length)
      yield { type, body }
    }
  }
}

/** The strings of a body that ends each with a zero. */
export const stringsOf = (body: Buffer): string[] => body.toString().split('\0')

const message = (type: string, ...parts: (Buffer | string | number)[]): Buffer => {
  const body = Buffer.concat(
    parts.map(part => {
      if (typeof part === 'string') return Buffer.from(`${part}\0`)
      return typeof part === 'number' ? int32(part) : part
    }),
  )
  return Buffer.concat([Buffer.from(type), int32(body.length + 4), body])
}
const int32 = (value: number): Buffer => {
  const buffer = Buffer.alloc(4)
  buffer.writeInt32BE(value)
  return buffer
}
const int16 = (value: number): Buffer => {
  const buffer = Buffer.alloc(2)
  buffer.writeInt16BE(value)
  return buffer
}

/** What a server says. */
export const say = {
  authentication: (code: number, more: Buffer | string = Buffer.alloc(0)): Buffer => message('R', code, more),
  parameter: (name: string, value: string): Buffer => message('S', name, value),
  ready: (): Buffer => message('Z', Buffer.from('I')),
  parsed: (): Buffer => message('1'),
  bound: (): Buffer => message('2'),
  closed: (): Buffer => message('3'),
  noRows: (): Buffer => message('n'),
  parameters: (): Buffer => message('t', int16(0)),
  complete: (tag: string): Buffer => message('C', tag),
  columns: (columns: readonly Column[]): Buffer =>
    message(
      'T',
      int16(columns.length),
      ...columns.flatMap(({ name, type }) => [name, 0, int16(0), OIDS[type], int16(-1), -1, int16(0)]),
    ),
  row: (values: readonly (string | null)[]): Buffer =>
    message(
      'D',
      int16(values.length),
      ...values.flatMap(value => (value === null ? [-1] : [Buffer.byteLength(value), Buffer.from(value)])),
    ),
  error: (code: string, text: string): Buffer => message('E', Buffer.from(`SERROR\0VERROR\0C${code}\0M${text}\0\0`)),
} as const

/** What a fault proxy can do to a watch: transforms of its stream of lines. */

/** What becomes of a watch. `after` counts events that still pass unharmed. */
export type WatchFault =
  /** The connection breaks. */
  | { readonly kind: 'reset'; readonly after: number }
  /** The connection breaks within a line or between them, wherever that many bytes end. */
  | { readonly kind: 'cut'; readonly afterBytes: number }
  /** Nothing comes any more; the connection stays. */
  | { readonly kind: 'half-open'; readonly after: number }
  /** The stream ends properly, half a line after the last event. */
  | { readonly kind: 'truncated'; readonly after: number }
  /** A line that is no JSON, then the stream goes on as if nothing had been. */
  | { readonly kind: 'garbage'; readonly after: number }
  /** The server says in the stream that the version is too old. */
  | { readonly kind: 'gone'; readonly after: number }
  /** The stream ends properly. */
  | { readonly kind: 'closed'; readonly after: number }
  /** Every event comes twice. */
  | { readonly kind: 'duplicated' }
  /** Every event comes late. */
  | { readonly kind: 'delayed'; readonly ms: number }
  /** Of all that happens to an object within that time only the last is told. */
  | { readonly kind: 'merged'; readonly ms: number }
  /** One change is never told; what comes before and after it is. */
  | { readonly kind: 'lossy'; readonly after: number }

/** Where a faulty stream goes. */
export interface WatchSink {
  write(bytes: Buffer | string): void
  end(): void
  reset(): void
}

const GONE = JSON.stringify({
  type: 'ERROR',
  object: { kind: 'Status', apiVersion: 'v1', status: 'Failure', message: 'too old', reason: 'Expired', code: 410 },
})

/** Takes a watch's bytes as they come and passes on what the fault makes of them. */
export const faultyWatch = (fault: WatchFault, sink: WatchSink): ((chunk: Buffer) => void) => {
  if (fault.kind === 'cut') return cut(fault.afterBytes, sink)
  let rest = Buffer.alloc(0)
  const merge = fault.kind === 'merged' ? merged(fault.ms, sink) : undefined
  let events = 0
  let over = false
  let isLost = false
  const take = (line: Buffer): void => {
    if (over) return
    if (fault.kind === 'merged') merge?.(line)
    else if (fault.kind === 'duplicated') sink.write(Buffer.concat([line, line]))
    else if (fault.kind === 'delayed') setTimeout(() => sink.write(line), fault.ms)
    else if (events < fault.after) sink.write(line)
    else if (fault.kind === 'lossy' && (isLost || isBookmark(line))) sink.write(line)
    else if (fault.kind === 'lossy') isLost = true
    else over = strike(fault, line, sink)
    events += 1
  }
  return chunk => {
    rest = Buffer.concat([rest, chunk])
    for (let end = rest.indexOf('\n'); end >= 0; end = rest.indexOf('\n')) {
      take(rest.subarray(0, end + 1))
      rest = rest.subarray(end + 1)
    }
  }
}

/** It tells how far the stream is, and no change. */
const isBookmark = (line: Buffer): boolean => line.includes('"type":"BOOKMARK"')

/** Instead of an event; true: nothing of the stream passes any more. */
const strike = (fault: WatchFault, line: Buffer, sink: WatchSink): boolean => {
  switch (fault.kind) {
    case 'reset':
      sink.reset()
      return true
    case 'half-open':
      return true
    case 'truncated':
      sink.write(line.subarray(0, Math.floor(line.length / 2)))
      sink.end()
      return true
    case 'garbage':
      sink.write('{"type": nonsense\n')
      sink.write(line)
      return true
    case 'gone':
      sink.write(`${GONE}\n`)
      sink.end()
      return true
    case 'closed':
      sink.end()
      return true
    case 'cut':
    case 'duplicated':
    case 'delayed':
    case 'merged':
    case 'lossy':
      throw new RangeError(`${fault.kind} strikes elsewhere`)
  }
}

const cut = (afterBytes: number, sink: WatchSink): ((chunk: Buffer) => void) => {
  let left = afterBytes
  return chunk => {
    if (left <= 0) return
    sink.write(chunk.subarray(0, left))
    left -= chunk.length
    if (left <= 0) sink.reset()
  }
}

interface Told {
  readonly type: string
  readonly object: { readonly metadata: { readonly uid: string } }
}

const merged = (ms: number, sink: WatchSink): ((line: Buffer) => void) => {
  const held = new Map<string, Told>()
  const flush = (): void => {
    for (const event of held.values()) sink.write(`${JSON.stringify(event)}\n`)
    held.clear()
  }
  return line => {
    const event = JSON.parse(line.toString()) as Told
    const { uid } = event.object.metadata
    if (isBookmark(line)) {
      flush()
      sink.write(line)
      return
    }
    if (held.size === 0) setTimeout(flush, ms)
    const before = held.get(uid)
    // Versions never fall: the last to change is told last.
    held.delete(uid)
    const isNew = before?.type === 'ADDED' && event.type === 'MODIFIED'
    held.set(uid, isNew ? { ...event, type: 'ADDED' } : event)
  }
}

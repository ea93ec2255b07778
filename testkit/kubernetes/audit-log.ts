/** The API server's own log of who asked for what: the proof of what a process did, and did not. */

import { randomBytes } from 'node:crypto'
import { closeSync, fstatSync, openSync, readdirSync, readSync, type Stats, statSync } from 'node:fs'
import { basename, dirname, extname, join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { namespaces } from '../../runtime/kubernetes/core-kinds.ts'
import type { KubernetesObjects } from '../../runtime/kubernetes/kubernetes-object.ts'

/** One request that ended. */
export interface AuditLine {
  readonly user: string
  readonly userAgent: string
  readonly verb: string
  readonly group: string
  /** With the subresource where there is one, e.g. `pods/status`. */
  readonly resource: string
  readonly namespace: string
  readonly name: string
  readonly code: number
  /** Epoch milliseconds of its arrival. */
  readonly at: number
}

const CHUNK = 4 << 20
const NEWLINE = 10

interface AuditEvent {
  readonly stage: string
  readonly verb: string
  readonly user: { readonly username: string }
  readonly userAgent?: string
  readonly objectRef?: {
    readonly apiGroup?: string
    readonly resource?: string
    readonly subresource?: string
    readonly namespace?: string
    readonly name?: string
  }
  readonly responseStatus?: { readonly code?: number }
  readonly requestReceivedTimestamp: string
}

const lineOf = ({
  user,
  userAgent,
  verb,
  objectRef,
  responseStatus,
  requestReceivedTimestamp,
}: AuditEvent): AuditLine => {
  const { apiGroup = '', resource = '', subresource, namespace = '', name = '' } = objectRef ?? {}
  return {
    user: user.username,
    userAgent: userAgent ?? '',
    verb,
    group: apiGroup,
    resource: subresource === undefined ? resource : `${resource}/${subresource}`,
    namespace,
    name,
    code: responseStatus?.code ?? 0,
    at: Date.parse(requestReceivedTimestamp),
  }
}

/** Where the file of a cluster's audit log is; undefined where nobody said. For a node's cluster, or an API-only one. */
export const auditLogOf = (cluster: 'node' | 'api'): string | undefined =>
  process.env[cluster === 'api' ? 'SERVICE_TEST_API_AUDIT_LOG' : 'SERVICE_TEST_AUDIT_LOG'] ||
  (cluster === 'api' && process.env['SERVICE_TEST_API_KUBECONFIG'] === undefined ? auditLogOf('node') : undefined)

/** A place in the log: the file by its inode, for one that grew too long is given another name, and the byte there. */
export interface AuditPlace {
  readonly inode: number
  readonly byte: number
}

/** `inode:byte`, which is what `stat --format %i:%s` writes. @throws Error for anything else */
export const parseAuditPlace = (text: string | undefined): AuditPlace => {
  const [, inode, byte] = /^(\d+):(\d+)$/.exec(text ?? '') ?? []
  if (inode === undefined || byte === undefined) throw new Error(`No place in an audit log: ${text}`)
  return { inode: Number(inode), byte: Number(byte) }
}

/** Reads what was written since it was opened, or since an earlier place. */
export class AuditLog {
  readonly #path: string
  readonly #begin: AuditPlace

  constructor(path: string, begin?: AuditPlace) {
    this.#path = path
    if (begin === undefined) {
      const { ino: inode, size: byte } = statSync(path)
      this.#begin = { inode, byte }
    } else this.#begin = begin
  }

  /** All lines up to now: the log is written a little later than a request ends. @throws Error when it does not come */
  async linesUntil(objects: Pick<KubernetesObjects, 'get'>): Promise<AuditLine[]> {
    const name = `marker-${randomBytes(8).toString('hex')}`
    await objects.get(namespaces, { namespace: '', name })
    for (const end = Date.now() + 30_000; Date.now() < end; ) {
      const lines = this.lines()
      if (lines.some(line => line.name === name)) return lines
      await sleep(50)
    }
    throw new Error(`${this.#path} does not tell of what this cluster is asked`)
  }

  /** Every ended request since then, in the order of their ends. @throws Error when the file where it begins is gone */
  lines(): AuditLine[] {
    return [...this.each()]
  }

  /** The same, one by one: of a long run they fit no memory. */
  *each(): Generator<AuditLine> {
    const files = this.#open()
    try {
      for (const [index, file] of files.entries()) yield* linesOf(file, index === 0 ? this.#begin.byte : 0)
    } finally {
      for (const file of files) closeSync(file)
    }
  }

  /** The file where it begins and all that came after it, in order. */
  #open(): readonly number[] {
    for (;;) {
      const names = this.#names()
      const files = names.map(name => openSync(join(dirname(this.#path), name), 'r'))
      // Renamed while they were opened: the newest would be missing.
      const isWhole = names.join() === this.#names().join()
      const first = files.findIndex(file => this.#isBegin(fstatSync(file)))
      for (const [index, file] of files.entries()) if (!isWhole || index < first || first < 0) closeSync(file)
      if (isWhole && first < 0)
        throw new Error(`Of ${this.#path} the file where it begins is gone: what came before is lost`)
      if (isWhole) return files.slice(first)
    }
  }

  #isBegin({ ino, size }: Stats): boolean {
    return ino === this.#begin.inode && size >= this.#begin.byte
  }

  /** Of a log that grew too long, `audit-2026-11-30T11-00-00.000.jsonl` is an earlier file. */
  #names(): readonly string[] {
    const current = basename(this.#path)
    const end = extname(current)
    const stem = basename(current, end)
    const earlier = readdirSync(dirname(this.#path)).filter(
      name =>
        name.startsWith(`${stem}-`) && name.endsWith(end) && /^-[\dT.-]+$/.test(name.slice(stem.length, -end.length)),
    )
    return [...earlier.toSorted(), current]
  }
}

function* linesOf(file: number, begin: number): Generator<AuditLine> {
  const { size } = fstatSync(file)
  const chunk = Buffer.alloc(CHUNK)
  let rest: Buffer = Buffer.alloc(0)
  for (let at = begin; at < size; ) {
    const read = readSync(file, chunk, 0, Math.min(CHUNK, size - at), at)
    at += read
    const bytes = Buffer.concat([rest, chunk.subarray(0, read)])
    const end = bytes.lastIndexOf(NEWLINE) + 1
    rest = bytes.subarray(end)
    for (const text of bytes.subarray(0, end).toString().split('\n').slice(0, -1)) {
      const event = JSON.parse(text) as AuditEvent
      if (event.stage === 'ResponseComplete') yield lineOf(event)
    }
  }
}

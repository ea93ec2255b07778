/** The API server's own log of who asked for what: the proof of what a process did, and did not. */

import { randomBytes } from 'node:crypto'
import { closeSync, fstatSync, openSync, readSync } from 'node:fs'
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

/** Reads what was written since it was opened, or since an earlier place. */
export class AuditLog {
  readonly #path: string
  readonly #begin: number

  constructor(path: string, begin?: number) {
    this.#path = path
    if (begin !== undefined) {
      this.#begin = begin
      return
    }
    const file = openSync(path, 'r')
    this.#begin = fstatSync(file).size
    closeSync(file)
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

  /** Every ended request since then, in the order of their ends. @throws Error when the file was rotated meanwhile */
  lines(): AuditLine[] {
    return [...this.each()]
  }

  /** The same, one by one: of a long run they fit no memory. */
  *each(): Generator<AuditLine> {
    const file = openSync(this.#path, 'r')
    try {
      const { size } = fstatSync(file)
      if (size < this.#begin) throw new Error(`${this.#path} was rotated: what came before is lost`)
      const chunk = Buffer.alloc(CHUNK)
      let rest: Buffer = Buffer.alloc(0)
      for (let at = this.#begin; at < size; ) {
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
    } finally {
      closeSync(file)
    }
  }
}

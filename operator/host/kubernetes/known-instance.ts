/** What the host knows of an instance beyond its objects. All of it may be lost: it is found out again. */
import type { Disk } from '../disk.ts'
import type { InstanceFailure, InstanceRef } from '../host.ts'
import { Turns } from '../turns.ts'
import { type InstanceNames, instanceNames } from './instance-names.ts'
import type { Run } from './judge-pod.ts'
import type { ServerFiles } from './server-files.ts'

export class KnownInstance {
  readonly ref: InstanceRef
  readonly names: InstanceNames
  /** One piece of work at a time, so that a start and a repair never undo each other. */
  readonly turns = new Turns()
  /** The run that answered, with all set that only a session can set. */
  answered: Run | undefined
  /** This process has tried to bring it up. */
  tried = false
  /** Its data was once served; undefined: not looked at yet. */
  served: boolean | undefined
  /** The files that its server should have read; undefined: not looked at yet. */
  files: ServerFiles | undefined
  /** When the Secret with the files is looked at again, epoch milliseconds. */
  filesDueAt = 0
  /** When the server is asked how it is again. */
  serverDueAt = 0
  disk: Disk | undefined
  /** When that was, epoch milliseconds. */
  diskReadAt = 0
  /** This process has looked at it once: before, only its objects tell how it is. */
  looked = false
  /** Since when there is no pod although one is wanted. */
  missingSince: number | undefined
  /** What only a look beyond its pod tells. */
  outerFailure: InstanceFailure | undefined
  storageProblem: InstanceFailure | undefined
  /** What the cluster refused when it was last tried to put it right. */
  refused: InstanceFailure | undefined
  /** It is being destroyed: nothing of it is put back. */
  destroying = false
  /** What was last told to listeners, by its digest. */
  told = ''

  constructor(ref: InstanceRef, managedBy: string) {
    this.ref = ref
    this.names = instanceNames(ref, managedBy)
  }
}

/** Where everything of the local host lies below its home. */
import { createHash } from 'node:crypto'
import { join } from 'node:path'
import { instanceName, shortUid } from '../../../crds/metadata.ts'
import { assertSocketFits } from '../../../runtime/postgres/settings.ts'
import type { InstanceRef } from '../host.ts'

export interface HostFolders {
  readonly home: string
  readonly environments: string
  readonly trash: string
  readonly templates: string
  /** A data folder made ahead. */
  readonly ahead: string
  readonly sockets: string
  readonly tls: string
}

/** A port with as many digits as any. */
const LONGEST_PORT = 65_535

/** The host's folders. Sockets go below the home where their paths fit, else into a short folder named after the home. */
export const hostFolders = (home: string): HostFolders => ({
  home,
  environments: join(home, 'environments'),
  trash: join(home, 'trash'),
  templates: join(home, 'templates'),
  ahead: join(home, 'ahead'),
  sockets: socketsBelow(home),
  tls: join(home, 'tls'),
})

const socketsBelow = (home: string): string => {
  const own = join(home, 'sockets')
  try {
    assertSocketFits(join(own, 'x'.repeat(8)), LONGEST_PORT)
    return own
  } catch {
    return join('/tmp', `svc-${createHash('sha256').update(home).digest('hex').slice(0, 12)}`)
  }
}

export interface InstanceFolders {
  /** `<instanceName>-<shortUid>`: also its name in the trash and in process lists. */
  readonly name: string
  readonly root: string
  readonly data: string
  readonly log: string
  readonly startLog: string
  readonly intentFile: string
  readonly sockets: string
  readonly trash: string
}

/** The name of an instance's folder. It carries the uid, so that an id used again never meets its predecessor's data. */
export const folderName = (ref: InstanceRef): string => `${instanceName(ref.path)}-${shortUid(ref.uid)}`

/** The folders of one instance. */
export const instanceFolders = (host: HostFolders, ref: InstanceRef): InstanceFolders => {
  const name = folderName(ref)
  const root = join(host.environments, name)
  return {
    name,
    root,
    data: join(root, 'data'),
    log: join(root, 'log'),
    startLog: join(root, 'start.log'),
    intentFile: join(root, INTENT_FILE),
    sockets: join(host.sockets, shortUid(ref.uid)),
    trash: join(host.trash, name),
  }
}

export const INTENT_FILE = 'intent.json'

/** The mark of a folder that is being removed; whoever finds one goes on. */
export const REMOVED_PREFIX = '.removed-'

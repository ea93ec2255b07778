/** Where everything of the local host lies below its home. */
import { join } from 'node:path'
import { instanceName, shortUid } from '../../../crds/metadata.ts'
import { socketFolderOf } from '../../../runtime/postgres/socket-folder.ts'
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

/** The host's folders. Sockets go below the home where their paths fit, else into a short folder named after the home. */
export const hostFolders = (home: string): HostFolders => ({
  home,
  environments: join(home, 'environments'),
  trash: join(home, 'trash'),
  templates: join(home, 'templates'),
  ahead: join(home, 'ahead'),
  sockets: socketFolderOf(home, join(home, 'sockets'), 'x'.repeat(8)),
  tls: join(home, 'tls'),
})

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

import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { controlPlaneUrls } from '../box/control-plane-databases.ts'
import { EmbeddedResourceStore } from '../runtime/embedded/embedded-resource-store.ts'
import { findPostmaster } from '../runtime/postgres/postmaster-pid.ts'
import { openSqlDirect } from '../testkit/open-sql.ts'
import type { BoxProcess } from './box-process.ts'
import type { World } from './world.ts'

/** A world that is a running single box; close it when done. */
export interface SingleBoxWorld extends World {
  close(): Promise<void>
}

/** How to reach the control-plane databases of a running box, past the control plane. */
export const controlPlaneOf = (box: BoxProcess): ReturnType<typeof controlPlaneUrls> => {
  const socketFolder = findPostmaster(box.dataFolders().controlPlane)?.socketFolder
  if (socketFolder === undefined) throw new Error('The control-plane database does not run')
  return controlPlaneUrls(join(box.home, 'secrets'), { socketFolder, port: 5432 })
}

/** Opens the scenarios' view of a box. */
export const singleBoxWorld = (box: BoxProcess): SingleBoxWorld => {
  const store = new EmbeddedResourceStore({ url: controlPlaneOf(box).store, clientName: 'e2e' })
  return {
    api: box.api(),
    openSql: openSqlDirect,
    store,
    isKept: place => Promise.resolve(existsSync(place)),
    close: () => store.close(),
  }
}

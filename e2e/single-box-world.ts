import assert from 'node:assert/strict'
import { existsSync, renameSync } from 'node:fs'
import { join } from 'node:path'
import { controlPlaneUrls } from '../box/control-plane-databases.ts'
import { environmentType } from '../crds/environment-type.ts'
import { shortUid } from '../crds/metadata.ts'
import type { ResourceKey } from '../lib/model/resource.ts'
import { EmbeddedResourceStore } from '../runtime/embedded/embedded-resource-store.ts'
import { findPostmaster } from '../runtime/postgres/postmaster-pid.ts'
import { openSqlDirect } from '../testkit/open-sql.ts'
import type { BoxProcess } from './box-process.ts'
import type { World } from './world.ts'

/** A world that is a running single box; close it when done. */
export interface SingleBoxWorld extends World {
  /** The data folder of an environment that is there. */
  dataFolder(key: ResourceKey): Promise<string>
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
  const dataFolder = async (key: ResourceKey): Promise<string> => {
    const resource = await store.get(environmentType, key)
    assert.ok(resource, `No resource ${key.name}`)
    const folder = box.dataFolders().environments.find(path => path.includes(shortUid(resource.metadata.uid)))
    assert.ok(folder, `${key.name} has no data folder`)
    return folder
  }
  return {
    api: box.api(),
    openSql: openSqlDirect,
    store,
    dataFolder,
    isKept: place => Promise.resolve(existsSync(place)),
    breakPostgres: async key => {
      const data = await dataFolder(key)
      const control = join(data, 'global', 'pg_control')
      const { pid } = findPostmaster(data) ?? {}
      renameSync(control, `${control}.aside`)
      if (pid !== undefined) process.kill(pid, 'SIGKILL')
      return async () => renameSync(`${control}.aside`, control)
    },
    close: () => store.close(),
  }
}

/**
 * A real Postgres where a cluster without a node has none: started as the image starts it, by the arguments of its pod and the
 * image's own rules of who may sign in, on its Service's loopback address. The Secret with its files is "mounted": copied when it
 * changes, as a kubelet does it, and read again only when somebody asks the server to.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { chownSync, mkdirSync, renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { ENVIRONMENT_RECIPE } from '../../operator/host/database-roles.ts'
import { FILES_PATH } from '../../operator/host/kubernetes/build-stateful-set.ts'
import type { InstanceNames } from '../../operator/host/kubernetes/instance-names.ts'
import { secrets, services, statefulSets } from '../../operator/host/kubernetes/object-types.ts'
import type { KubernetesObjects } from '../../runtime/kubernetes/kubernetes-object.ts'
import { createDataFolder } from '../../runtime/postgres/create-data-folder.ts'
import { childIdentity } from '../../runtime/postgres/server-process.ts'
import { ensureTemplate } from '../../runtime/postgres/template-folder.ts'
import { serverFolder, testAccount, testBinaries, testFolder } from '../server-files.ts'

const IMAGE = join(import.meta.dirname, '../../images/postgres')
const SOCKETS = '/run/postgresql'
const LOOK_MS = 100
/** What a machine that runs tests lacks. */
const MODEST = ['-c', 'fsync=off', '-c', 'dynamic_shared_memory_type=mmap', '-c', 'shared_buffers=32MB']

export interface MountedPostgres {
  /** Of its Service. */
  readonly address: string
  readonly running: boolean
  stop(): Promise<void>
}

/** Starts it once its StatefulSet, its Service and its Secret are there. */
export const startMountedPostgres = async (
  objects: KubernetesObjects,
  names: InstanceNames,
): Promise<MountedPostgres> => {
  const key = { namespace: names.namespace, name: names.name }
  const [statefulSet, service] = await Promise.all([objects.get(statefulSets, key), objects.get(services, key)])
  const address = service?.spec?.clusterIP ?? ''
  const account = testAccount()
  const folder = testFolder()
  const [files, sockets] = [serverFolder(folder, 'files'), serverFolder(folder, 's')]
  const found = await testBinaries()
  const template = await ensureTemplate(found, account, join(folder, 'templates'), ENVIRONMENT_RECIPE)
  mkdirSync(join(folder, 'volume'))
  await createDataFolder(template.folder, join(folder, 'volume/pgdata'))

  let seen = ''
  const mount = async (): Promise<void> => {
    const secret = await objects.get(secrets, { namespace: names.namespace, name: names.files })
    if (secret?.data === undefined || secret.metadata?.resourceVersion === seen) return
    for (const [name, value] of Object.entries(secret.data)) {
      const path = join(files, name)
      const text = Buffer.from(value, 'base64').toString()
      writeFileSync(`${path}.new`, text.replaceAll(FILES_PATH, files), { mode: 0o600 })
      if (account !== undefined) chownSync(`${path}.new`, account.uid, account.gid)
      renameSync(`${path}.new`, path)
    }
    seen = secret.metadata?.resourceVersion ?? ''
  }
  await mount()
  const given = statefulSet?.spec?.template.spec?.containers[0]?.args ?? []
  const args = given.map(arg =>
    arg
      .replaceAll(FILES_PATH, files)
      .replaceAll(SOCKETS, sockets)
      .replace(/^listen_addresses=.*/, `listen_addresses=${address}`),
  )
  const rules = ['hba', 'ident'].flatMap(kind => ['-c', `${kind}_file=${join(IMAGE, `pg_${kind}.conf`)}`])
  const child: ChildProcess = spawn(
    found.postgres,
    ['-D', join(folder, 'volume/pgdata'), ...rules, ...args, ...MODEST],
    { ...childIdentity(account), stdio: 'ignore' },
  )
  const running = (): boolean => child.exitCode === null && child.signalCode === null
  const following = (async () => {
    while (running()) {
      await sleep(LOOK_MS)
      await mount().catch(() => undefined)
    }
  })()
  return {
    address,
    get running() {
      return running()
    },
    stop: async () => {
      const ended = once(child, 'exit')
      if (running()) {
        child.kill('SIGINT')
        await ended
      }
      await following
    },
  }
}

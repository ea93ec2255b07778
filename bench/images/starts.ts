/** How long the programs of the images take until they answer, from the command that runs a container. */

import { once } from 'node:events'
import { chmodSync, chownSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { controlPlaneDatabase } from '../../testkit/control-plane-database.ts'
import { storeDatabase } from '../../testkit/embedded-store.ts'
import { freePorts } from '../../testkit/free-port.ts'
import { testCluster } from '../../testkit/postgres.ts'
import { end, type Image, type RunOptions } from './container.ts'

const ROUNDS = 5
const DEADLINE_MS = 60_000

/** Median of the rounds, in milliseconds. */
const median = async (once: () => Promise<number>): Promise<number> => {
  const rounds: number[] = []
  for (let round = 0; round < ROUNDS; round++) rounds.push(await once())
  return rounds.sort((a, b) => a - b)[ROUNDS >> 1] ?? Number.NaN
}

/** A container to the first word of a program that does nothing else. */
export const emptyStart = (image: Image, command: readonly string[]): Promise<number> =>
  median(async () => {
    const began = performance.now()
    const child = image.start({ command })
    await once(child.stdout, 'data')
    const took = performance.now() - began
    await end(child, 'SIGTERM')
    return took
  })

/** The API server to its first `/readyz` that says yes, its database migrated before. */
export const apiServerStart = async (image: Image, { cached }: { readonly cached: boolean }): Promise<number> => {
  const cluster = await testCluster()
  // The account of the image is another one than ours.
  chmodSync(cluster.socketFolder, 0o711)
  const inside = (url: string): string => url.replace(/host=[^&]*/, `host=${encodeURIComponent('/run/database')}`)
  const plane = await controlPlaneDatabase()
  const storeUrl = await storeDatabase()
  const port = await freePorts(2)
  const options: RunOptions = {
    command: ['node', 'apiserver/main.ts'],
    mounts: { '/run/database': cluster.socketFolder },
    env: {
      SERVICE_DATABASE_URL: inside(plane.url('svc_api')),
      SERVICE_AUTH_MODE: 'builtin',
      SERVICE_STORE: 'embedded',
      SERVICE_STORE_URL: inside(storeUrl),
      SERVICE_KMS_MASTER_KEY: Buffer.alloc(32, 1).toString('base64'),
      SERVICE_LISTEN: `127.0.0.1:${port}`,
      SERVICE_METRICS_LISTEN: `127.0.0.1:${port + 1}`,
      SERVICE_STOP_GRACE_SECONDS: '0',
      ...(cached ? {} : { NODE_DISABLE_COMPILE_CACHE: '1' }),
    },
  }
  const milliseconds = await median(async () => {
    const began = performance.now()
    const child = image.start(options)
    let said = ''
    for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk: Buffer) => (said += chunk.toString()))
    while ((await fetch(`http://127.0.0.1:${port}/readyz`).catch(() => undefined))?.ok !== true) {
      if (child.exitCode !== null || performance.now() - began > DEADLINE_MS)
        throw new Error(`The API server does not start: ${said.slice(-2000)}`)
      await sleep(5)
    }
    const took = performance.now() - began
    await end(child, 'SIGTERM')
    return took
  })
  await plane.database.stop()
  return milliseconds
}

/** Postgres to its word that it accepts connections: `fresh` on an empty volume, else on the data of a start before. */
export const postgresStart = async (image: Image, { fresh }: { readonly fresh: boolean }): Promise<number> => {
  const start = async (volume: string): Promise<number> => {
    const port = `port=${await freePorts()}`
    const began = performance.now()
    const child = image.start({
      command: ['svc-postgres', '-c', port, '-c', 'unix_socket_directories=/tmp'],
      mounts: { '/var/lib/postgresql/data': volume },
      env: { SVC_NEW_DATA: 'allowed' },
    })
    let said = ''
    const took = await new Promise<number>((resolve, reject) => {
      const fail = (): void => reject(new Error(`Postgres does not start: ${said.slice(-2000)}`))
      const late = setTimeout(fail, DEADLINE_MS)
      child.once('exit', fail)
      for (const stream of [child.stdout, child.stderr])
        stream.on('data', (chunk: Buffer) => {
          said += chunk.toString()
          if (!said.includes('ready to accept connections')) return
          clearTimeout(late)
          resolve(performance.now() - began)
        })
    })
    await end(child, 'SIGINT')
    return took
  }
  const newVolume = (): string => {
    const folder = mkdtempSync(join(tmpdir(), 'svc-bench-volume-'))
    chownSync(folder, 999, 999)
    return folder
  }
  if (fresh)
    return median(async () => {
      const volume = newVolume()
      const took = await start(volume)
      rmSync(volume, { recursive: true })
      return took
    })
  const volume = newVolume()
  await start(volume)
  const milliseconds = await median(() => start(volume))
  rmSync(volume, { recursive: true })
  return milliseconds
}

/** Size and start-up time of both images, built anew from this checkout. Run: node bench/images.ts */
import { createReadStream, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pipeline } from 'node:stream/promises'
import { createGzip } from 'node:zlib'
import { succeeded } from '../testkit/kubernetes/kubectl.ts'
import { stopTestCluster } from '../testkit/postgres.ts'
import { removeTestFolders } from '../testkit/server-files.ts'
import { type Figure, renderFigures, seconds } from './figure.ts'
import { type Image, openImage } from './images/container.ts'
import { apiServerStart, emptyStart, postgresStart } from './images/starts.ts'

const ROOT = join(import.meta.dirname, '..')
const FOLDERS = ['control-plane', 'postgres'] as const

const megabytes = (bytes: number): string => `${(bytes / 1e6).toFixed(0)} MB`

/** Bytes of a file as a registry keeps them. */
const compressed = async (file: string): Promise<number> => {
  let bytes = 0
  await pipeline(createReadStream(file), createGzip({ level: 6 }), async chunks => {
    for await (const chunk of chunks) bytes += (chunk as Buffer).length
  })
  return bytes
}

const unpacked = async (image: Image): Promise<number> => {
  const command = ['sh', '-c', 'du --summarize --bytes --one-file-system / 2>/dev/null || true']
  return Number.parseInt(await image.run({ command, user: '0' }), 10)
}

const packages = async (image: Image): Promise<string> => {
  const debian = (await image.run({ command: ['dpkg-query', '--show'] })).trim().split('\n').length
  const list = await image.run({ command: ['sh', '-c', 'cat /usr/share/sbom/npm.cdx.json 2>/dev/null || true'] })
  if (list === '') return `${debian} of Debian`
  const { components } = JSON.parse(list) as { readonly components: readonly unknown[] }
  return `${debian} of Debian, ${components.length} of npm`
}

/** Builds both. @returns their names and archives, in the order of FOLDERS */
const build = async (folder: string): Promise<readonly { readonly name: string; readonly archive: string }[]> => {
  const printed = await succeeded(join(ROOT, 'tools/images.sh'), [], {
    cwd: ROOT,
    env: { IMAGES: FOLDERS.join(' '), SAVE: folder },
  })
  const names = printed.split('\n').flatMap(line => /^(\S+\/svc-\S+:\S+) /.exec(line)?.[1] ?? [])
  return FOLDERS.map((image, index) => ({ name: names[index] ?? '', archive: join(folder, `svc-${image}.tar`) }))
}

/** Builds and measures. */
export const measureImages = async (): Promise<readonly Figure[]> => {
  const folder = mkdtempSync(join(tmpdir(), 'svc-bench-images-'))
  const opened: Image[] = []
  const figures: Figure[] = []
  const shown = (name: string, value: string, aim = 'shown'): number => figures.push({ name, value, aim })
  try {
    for (const { name, archive } of await build(folder)) {
      const image = await openImage(name)
      opened.push(image)
      const label = name.split('/').at(-1)
      const sizes = [megabytes(await compressed(archive)), megabytes(await unpacked(image))]
      shown(`\`${label}\`, compressed / unpacked`, sizes.join(' / '))
      shown(`\`${label}\`, packages`, await packages(image))
    }
    const [plane, postgres] = opened
    if (plane === undefined || postgres === undefined) throw new Error('There is an image too few')
    const node = await emptyStart(plane, ['node', '--eval', 'console.log(0)'])
    const cached = await apiServerStart(plane, { cached: true })
    const bare = await apiServerStart(plane, { cached: false })
    shown('control plane: container start → an empty Node program speaks (floor)', seconds(node))
    shown('control plane: container start → `/readyz`, with the compile cache', seconds(cached))
    shown('control plane: container start → `/readyz`, without', seconds(bare))
    const empty = await emptyStart(postgres, ['echo', '0'])
    const fresh = await postgresStart(postgres, { fresh: true })
    const again = await postgresStart(postgres, { fresh: false })
    shown('Postgres: container start → `echo` speaks (floor)', seconds(empty))
    shown('Postgres: container start on an empty volume → accepting', seconds(fresh))
    shown('Postgres: container start on its data → accepting', seconds(again))
    return figures
  } finally {
    for (const image of opened) await image.remove()
    rmSync(folder, { recursive: true, force: true })
  }
}

if (import.meta.main) {
  try {
    console.log(renderFigures(await measureImages()))
  } finally {
    await stopTestCluster()
    removeTestFolders()
  }
}

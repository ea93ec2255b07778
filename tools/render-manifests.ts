/** Writes what `manifests/` takes from the chart, rendered by Helm. */
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { stringify } from 'yaml'
import { identity, type Rendered, rendered } from '../charts/test/render.ts'
import { type Helm, helms } from '../testkit/kubernetes/helm.ts'

const NAMESPACE = 'svc-system'
const HEADER = '# Rendered from charts/svc-platform by make manifests. Do not edit.\n'

/** Labels and annotations that say it came by Helm. */
const HELM_LABELS = ['helm.sh/chart', 'app.kubernetes.io/managed-by', 'app.kubernetes.io/instance']

const without = (map: object | undefined, gone: (key: string) => boolean): object | undefined => {
  if (map === undefined) return undefined
  const left = Object.entries(map).filter(([key]) => !gone(key))
  return left.length === 0 ? undefined : Object.fromEntries(left)
}

/** An object, those in it included, as somebody writes it who knows no Helm. */
const plain = (value: unknown): unknown => {
  if (Array.isArray(value)) return value.map(plain)
  if (value === null || typeof value !== 'object') return value
  return Object.fromEntries(
    Object.entries(value).flatMap(([key, inner]: [string, unknown]) => {
      if (key === 'labels') return [[key, without(inner as object, label => HELM_LABELS.includes(label))]]
      if (key !== 'annotations') return [[key, plain(inner)]]
      const annotations = without(inner as object, name => name.startsWith('helm.sh/'))
      return annotations === undefined ? [] : [[key, annotations]]
    }),
  )
}

/** What the chart makes for values, but for Secrets, which nobody commits, and the test. */
export const platformObjects = async (helm: Helm, args: readonly string[]): Promise<readonly Rendered[]> => {
  const objects = await rendered(helm, 'svc-platform', NAMESPACE, args)
  return objects
    .filter(({ kind, metadata }) => kind !== 'Secret' && metadata.labels?.['app.kubernetes.io/component'] !== 'test')
    .map(object => plain(object) as Rendered)
}

const isDatabase = ({ metadata }: Rendered): boolean => metadata.labels?.['app.kubernetes.io/component'] === 'database'

/** The flags of helm that the base and the overlays are rendered with. */
export const MANIFEST_VALUES = {
  base: ['--set', 'database.mode=external', '--set', 'database.external.secretName=svc-database'],
  dev: [],
  ha: [
    ...['-f', join(import.meta.dirname, '../charts/svc-platform/values-ha.yaml')],
    ...['--set', 'database.external.secretName=svc-database'],
  ],
} as const satisfies Readonly<Record<string, readonly string[]>>

/** The rendered files of `manifests/`, by path. */
export const manifestFiles = async (helm: Helm): Promise<Readonly<Record<string, string>>> => {
  const [base, dev, ha] = [
    await platformObjects(helm, MANIFEST_VALUES.base),
    await platformObjects(helm, MANIFEST_VALUES.dev),
    await platformObjects(helm, MANIFEST_VALUES.ha),
  ]
  const inBase = new Set(base.map(identity))
  const file = (objects: readonly Rendered[]): string =>
    HEADER + objects.map(object => stringify(object, { lineWidth: 0 })).join('---\n')
  return {
    'manifests/base/platform.yaml': file(base),
    'manifests/components/database/database.yaml': file(dev.filter(isDatabase)),
    'manifests/overlays/ha/more.yaml': file(ha.filter(object => !inBase.has(identity(object)))),
  }
}

if (import.meta.main) {
  const [helm] = await helms()
  if (helm === undefined) throw new Error('make manifests needs helm')
  for (const [path, fresh] of Object.entries(await manifestFiles(helm))) {
    const file = join(import.meta.dirname, '..', path)
    if ((await readFile(file, 'utf8').catch(() => undefined)) === fresh) continue
    await writeFile(file, fresh)
    console.log(`written: ${path}`)
  }
}

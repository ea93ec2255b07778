/** The Secret with what a server reads from files and a reload changes: certificate, key, authorities, settings. Pure. */
import type { InstanceNames } from './instance-names.ts'
import type { Secret } from './object-types.ts'

/** The text of a server's files. The key is a secret. */
export interface ServerFiles {
  readonly certificate: string
  readonly key: string
  /** The authorities whose certificates are trusted, for clients and for the server itself. */
  readonly authorities: string
  /** postgresql.conf. */
  readonly settings: string
}

/** The key that lets the image begin an empty volume's data. Only a server that has never answered has it. */
export const NEW_DATA = 'new-data'

export const FILE_NAMES = {
  certificate: 'tls.crt',
  key: 'tls.key',
  authorities: 'ca.crt',
  settings: 'postgresql.conf',
} as const

const encode = (text: string): string => btoa(text)

export const buildFilesSecret = (
  names: InstanceNames,
  files: ServerFiles,
  /** An empty volume may be given new data. */
  newData: boolean,
): Secret => ({
  apiVersion: 'v1',
  kind: 'Secret',
  metadata: {
    name: names.files,
    namespace: names.namespace,
    labels: names.labels,
    annotations: names.annotations,
    ownerReferences: [names.owner],
  },
  type: 'kubernetes.io/tls',
  data: {
    [FILE_NAMES.certificate]: encode(files.certificate),
    [FILE_NAMES.key]: encode(files.key),
    [FILE_NAMES.authorities]: encode(files.authorities),
    [FILE_NAMES.settings]: encode(files.settings),
    ...(newData ? { [NEW_DATA]: encode('allowed') } : {}),
  },
})

export const allowsNewData = (secret: Secret): boolean => secret.data?.[NEW_DATA] !== undefined

/** The files in a Secret; undefined where one is missing or unreadable. */
export const filesIn = (secret: Secret | undefined): ServerFiles | undefined => {
  const read = (name: string): string => atob(secret?.data?.[name] ?? '')
  try {
    const files = {
      certificate: read(FILE_NAMES.certificate),
      key: read(FILE_NAMES.key),
      authorities: read(FILE_NAMES.authorities),
      settings: read(FILE_NAMES.settings),
    }
    return Object.values(files).includes('') ? undefined : files
  } catch {
    return undefined
  }
}

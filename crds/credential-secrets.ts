/** The Secrets that hold an environment's passwords on Kubernetes: names, labels and what clients find in theirs. Pure. */

import { POSTGRES_PORT } from '../lib/model/environment.ts'
import type { EnvironmentPath } from '../lib/model/identifiers.ts'
import type { OwnerReference } from '../lib/model/resource.ts'
import { ANNOTATIONS, API_VERSION, environmentLabels, instanceName, LABELS, OPERATOR, shortUid } from './metadata.ts'

/** An Environment, as far as its Secrets are named after it. */
interface SecretOwner {
  readonly namespace: string
  /** `<organization>.<project>.<environment>`. */
  readonly name: string
  readonly uid: string
}

/** Where clients find in their Secret whom to trust, as PEM; it changes when the authority does. */
export const AUTHORITIES_KEY = 'ca.crt'

const DATABASE = 'app'

const pathOf = ({ name }: SecretOwner): EnvironmentPath => {
  const [organizationId = '', projectId = '', environmentId = ''] = name.split('.')
  return { organizationId, projectId, environmentId }
}

const instanceOf = (owner: SecretOwner): string => instanceName(pathOf(owner))

/** A line of a .pgpass file escapes what would end its field. */
const pgpassField = (text: string): string => text.replaceAll(/[\\:]/g, character => `\\${character}`)

export const credentialSecrets = {
  /** Labels a Secret with the uid that it belongs to. */
  uidLabel: LABELS.uid,

  /** `app` is the tenant's and mounted by its programs; `ops` is ours, and what is in force. */
  names: (owner: SecretOwner): { readonly app: string; readonly ops: string } => {
    const name = `${instanceOf(owner)}-${shortUid(owner.uid)}`
    return { app: `${name}-app`, ops: `${name}-ops` }
  },

  metadata: (
    owner: SecretOwner,
  ): {
    readonly labels: Readonly<Record<string, string>>
    readonly annotations: Readonly<Record<string, string>>
    readonly ownerReferences: readonly OwnerReference[]
  } => ({
    labels: { ...environmentLabels(pathOf(owner)), [LABELS.uid]: owner.uid, [LABELS.managedBy]: OPERATOR },
    annotations: { [ANNOTATIONS.resource]: owner.name },
    ownerReferences: [{ apiVersion: API_VERSION, kind: 'Environment', name: owner.name, uid: owner.uid }],
  }),

  /**
   * What a program that mounts the `app` Secret connects by, in the forms that libraries ask for. `require` works for whoever has
   * the text alone; whoever has the Secret's `ca.crt` in a file asks for more (docs/adr/0008).
   */
  app: (
    owner: SecretOwner,
    { username, password }: { readonly username: string; readonly password: string },
  ): Record<string, string> => {
    const host = `${instanceOf(owner)}.${owner.namespace}.svc`
    const [user, secret] = [encodeURIComponent(username), encodeURIComponent(password)]
    return {
      host,
      port: String(POSTGRES_PORT),
      database: DATABASE,
      user: username,
      password,
      uri: `postgresql://${user}:${secret}@${host}:${POSTGRES_PORT}/${DATABASE}?sslmode=require`,
      'jdbc-uri': `jdbc:postgresql://${host}:${POSTGRES_PORT}/${DATABASE}?user=${user}&password=${secret}&sslmode=require`,
      pgpass: `${[host, String(POSTGRES_PORT), DATABASE, username, password].map(pgpassField).join(':')}\n`,
    }
  },
}

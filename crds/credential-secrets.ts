/** The Secrets that hold an environment's passwords on Kubernetes: names, labels and what clients find in theirs. Pure. */
import type { OwnerReference } from '../lib/model/resource.ts'
import { API_VERSION, GROUP, instanceName, shortUid } from './metadata.ts'

/** An Environment, as far as its Secrets are named after it. */
interface SecretOwner {
  readonly namespace: string
  /** `<organization>.<project>.<environment>`. */
  readonly name: string
  readonly uid: string
}

const PORT = 5432
const DATABASE = 'app'

const instanceOf = ({ name }: SecretOwner): string => {
  const [organizationId = '', projectId = '', environmentId = ''] = name.split('.')
  return instanceName({ organizationId, projectId, environmentId })
}

/** A line of a .pgpass file escapes what would end its field. */
const pgpassField = (text: string): string => text.replaceAll(/[\\:]/g, character => `\\${character}`)

export const credentialSecrets = {
  /** Labels a Secret with the uid that it belongs to. */
  uidLabel: `${GROUP}/uid`,

  /** `app` is the tenant's and mounted by its programs; `ops` is ours, and what is in force. */
  names: (owner: SecretOwner): { readonly app: string; readonly ops: string } => {
    const name = `${instanceOf(owner)}-${shortUid(owner.uid)}`
    return { app: `${name}-app`, ops: `${name}-ops` }
  },

  metadata: (
    owner: SecretOwner,
  ): { readonly labels: Readonly<Record<string, string>>; readonly ownerReferences: readonly OwnerReference[] } => ({
    labels: { [`${GROUP}/uid`]: owner.uid, 'app.kubernetes.io/managed-by': 'svc-operator' },
    ownerReferences: [{ apiVersion: API_VERSION, kind: 'Environment', name: owner.name, uid: owner.uid }],
  }),

  /** What a program that mounts the `app` Secret connects by, in the forms that libraries ask for. */
  app: (
    owner: SecretOwner,
    { username, password }: { readonly username: string; readonly password: string },
  ): Record<string, string> => {
    const host = `${instanceOf(owner)}.${owner.namespace}.svc`
    const [user, secret] = [encodeURIComponent(username), encodeURIComponent(password)]
    return {
      host,
      port: String(PORT),
      database: DATABASE,
      user: username,
      password,
      uri: `postgresql://${user}:${secret}@${host}:${PORT}/${DATABASE}?sslmode=require`,
      'jdbc-uri': `jdbc:postgresql://${host}:${PORT}/${DATABASE}?user=${user}&password=${secret}&sslmode=require`,
      pgpass: `${[host, String(PORT), DATABASE, username, password].map(pgpassField).join(':')}\n`,
    }
  },
}

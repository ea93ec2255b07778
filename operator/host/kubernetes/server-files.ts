/** The files that a server reads: certificate, key, authorities and settings, kept in the instance's Secret. */
import { settleObject } from '../../../runtime/kubernetes/settle-object.ts'
import { isGoodServer, issueServer } from './authority.ts'
import { allowsNewData, buildFilesSecret, filesIn } from './build-files-secret.ts'
import { type ClusterWorld, keyIn } from './cluster-world.ts'
import { externalHost } from './external-door.ts'
import type { InstanceNames } from './instance-names.ts'
import { type Secret, secrets } from './object-types.ts'
import { forbidNewData, type Remains, readFilesSecret, wasServed } from './served-data.ts'
import { reloadableSettings } from './server-settings.ts'
import type { PlacedSpec } from './wanted.ts'

/** What a server should have read. */
export interface ServerFiles {
  /** It shows this once it has. */
  readonly digest: string
  /** The name from outside the cluster that its certificate is good for, beside those from inside. */
  readonly externalHost: string | undefined
}

/**
 * Makes the Secret hold what it should: a certificate that is good for a while, today's authorities, the settings of the spec, and
 * whether data may be begun.
 */
export const ensureServerFiles = async (
  world: ClusterWorld,
  names: InstanceNames,
  spec: PlacedSpec,
  remains: Remains,
  /** The Secret as it was just read; by default it is read. */
  read?: { readonly secret: Secret | undefined },
): Promise<ServerFiles> => {
  const [secret, { state, authorities }] = await Promise.all([
    read === undefined ? readFilesSecret(world, names) : read.secret,
    world.authority.get(),
  ])
  const now = world.now()
  const kept = filesIn(secret)
  const outside = externalHost(world.services.get(keyIn(names, names.name)), world.settings.exposure[spec.kind])
  const hosts = outside === undefined ? names.hosts : [...names.hosts, outside]
  const identity = kept !== undefined && isGoodServer(state, kept, hosts, now) ? kept : issueServer(state, hosts, now)
  const { certificate, key } = identity
  const { settings, digest } = reloadableSettings(spec, names.name, [certificate, authorities])
  const served = wasServed(remains, secret)
  const wanted = buildFilesSecret(names, { certificate, key, authorities, settings }, !served)
  await settleObject(wanted, secret, files => world.objects.apply(secrets, files))
  if (served && secret !== undefined && allowsNewData(secret)) await forbidNewData(world, names)
  return { digest, externalHost: outside }
}

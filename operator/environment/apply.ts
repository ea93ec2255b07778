/** Turns an action into calls of the ports. Knows how, never whether. */
import type { Environment } from '../../crds/environment.ts'
import { environmentType } from '../../crds/environment-type.ts'
import { ENVIRONMENT_FINALIZER } from '../../crds/metadata.ts'
import { keyOf } from '../../lib/model/resource.ts'
import type { CredentialSet, Credentials } from '../../runtime/credentials/credentials.ts'
import { ConditionError } from '../host/host.ts'
import type { Action } from './action.ts'
import { newCredentials } from './new-credentials.ts'
import { credentialOwner, instanceRef } from './observe.ts'
import { onSameGround } from './same-ground.ts'
import { release, type TearDownPorts, tearDown } from './tear-down.ts'

/**
 * Does the action. `environment` is the resource as it stands after its status was reported; `kept` are its passwords, where they
 * were read for this very decision.
 * @returns whether there may be more to do at once; false: it takes its time
 * @throws ConditionError what is wrong with the environment; StoreError `Conflict` when somebody changed it meanwhile
 */
export const apply = async (
  action: Action,
  environment: Environment,
  ports: TearDownPorts,
  { nowMs, kept }: { readonly nowMs: number; readonly kept: CredentialSet | undefined },
): Promise<boolean> => {
  const { store, credentials, host } = ports
  switch (action.kind) {
    case 'add-finalizer': {
      const metadata = { finalizers: [...environment.metadata.finalizers, ENVIRONMENT_FINALIZER] }
      await onSameGround(store, environment, ground =>
        store.patch(environmentType, keyOf(environment), { metadata }, ground),
      )
      return true
    }
    case 'make-credentials':
      await credentials.write(credentialOwner(environment), newCredentials(action.rotation), { first: true })
      return true
    case 'prepare-rotation':
      await prepareRotation(environment, credentials, action.rotation)
      return true
    case 'publish-credentials':
      await credentials.write(credentialOwner(environment), await mustRead(environment, credentials))
      return true
    case 'promote-credentials': {
      const { next } = (await credentials.read(credentialOwner(environment))) ?? {}
      if (next !== undefined) await credentials.write(credentialOwner(environment), next)
      return true
    }
    case 'start':
      await host.start(instanceRef(environment), action.settings)
      return true
    case 'stop':
      await host.stop(instanceRef(environment))
      return true
    case 'set-deletion-policy':
      await host.setDeletionPolicy(instanceRef(environment), action.policy)
      return true
    case 'apply-credentials': {
      const current = kept ?? (await mustRead(environment, credentials))
      await host.applyCredentials(instanceRef(environment), current.next ?? current).catch((error: unknown) => {
        // Whatever Postgres said: it may quote the statement, which is nobody's business.
        const message = 'Postgres did not take the passwords'
        throw error instanceof ConditionError
          ? error
          : new ConditionError('CredentialsReady', 'CredentialsNotApplied', message, error)
      })
      return true
    }
    case 'expire':
      await onSameGround(store, environment, ground => store.delete(environmentType, keyOf(environment), ground))
      return true
    case 'tear-down':
      return await tearDown(environment, action.policy, ports, nowMs)
    case 'release':
      await release(environment, store)
      return true
  }
}

const mustRead = async (environment: Environment, credentials: Credentials): Promise<CredentialSet> => {
  const kept = await credentials.read(credentialOwner(environment))
  if (kept === undefined)
    throw new ConditionError('CredentialsReady', 'CredentialsMissing', 'The stored passwords are gone')
  return kept
}

/** Keeps new passwords beside those in force; those of a rotation that was begun before are kept as they are. */
const prepareRotation = async (environment: Environment, credentials: Credentials, rotation: string): Promise<void> => {
  const kept = await mustRead(environment, credentials)
  if (kept.next !== undefined) return
  await credentials.write(credentialOwner(environment), { ...kept, next: { ...newCredentials(), rotation } })
}

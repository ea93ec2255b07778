/** Builders of resources for tests: a base, and modifiers that each say one thing. A test shows only its point. */

import type { Environment, EnvironmentSpec, EnvironmentStatus } from '../crds/environment.ts'
import { API_VERSION, ENVIRONMENT_FINALIZER, projectNamespace } from '../crds/metadata.ts'
import type { Phase } from '../lib/model/environment.ts'
import { environmentName } from '../lib/model/identifiers.ts'
import type { RequestVerb } from '../lib/model/operation.ts'
import type { ObjectMetadata } from '../lib/model/resource.ts'
import { operatorConfig } from '../operator/config/config.ts'
import { type Claims, conditionsOf } from '../operator/environment/conditions.ts'
import { wantedOf } from '../operator/environment/defaults.ts'
import type { Observed } from '../operator/environment/observed.ts'
import { blank, type Recollection, withObservation } from '../operator/environment/recollection.ts'
import type { InstanceState, ObservedInstance } from '../operator/host/host.ts'

/** The moment at which generated environments were created. */
export const CREATED = '2026-01-05T12:00:00.000Z'
export const CREATED_MS = Date.parse(CREATED)
export const isoAfter = (seconds: number): string => new Date(CREATED_MS + seconds * 1000).toISOString()

const PATH = { organizationId: 'acme', projectId: 'shop', environmentId: 'main' }

/** The figures that generated environments name. */
export const FIGURES = { cpu: '500m', memory: '256Mi', storage: '1Gi', maxConnections: 50 }

const BASE: Environment = {
  apiVersion: API_VERSION,
  kind: 'Environment',
  metadata: {
    name: environmentName(PATH),
    namespace: projectNamespace(PATH.organizationId, PATH.projectId),
    uid: '11111111-2222-4333-8444-555555555555',
    resourceVersion: '7',
    generation: 1,
    creationTimestamp: CREATED,
    finalizers: [ENVIRONMENT_FINALIZER],
    labels: {},
    annotations: {},
    ownerReferences: [],
  },
  spec: { ...PATH, kind: 'staging', resources: FIGURES },
}

export type EnvironmentModifier = (environment: Environment) => Environment

export const environment = (...modifiers: readonly EnvironmentModifier[]): Environment =>
  modifiers.reduce((made, modify) => modify(made), BASE)

export const metadata =
  (fields: Partial<ObjectMetadata>): EnvironmentModifier =>
  made => ({ ...made, metadata: { ...made.metadata, ...fields } })

export const spec =
  (fields: Partial<EnvironmentSpec>): EnvironmentModifier =>
  made => ({ ...made, spec: { ...made.spec, ...fields } })

export const status =
  (fields: Partial<EnvironmentStatus>): EnvironmentModifier =>
  made => ({ ...made, status: { ...made.status, ...fields } })

export const preview = (fields: { ttlHours?: number; expiresAt?: string } = {}): EnvironmentModifier =>
  spec({ kind: 'preview', ...fields })

export const suspended = spec({ suspended: true })

/** The spec changed since the status was written. */
export const edited: EnvironmentModifier = made => metadata({ generation: made.metadata.generation + 1 })(made)

export const deletionAsked = (seconds: number): EnvironmentModifier =>
  metadata({ deletionTimestamp: isoAfter(seconds), generation: 2 })

export const request = (verb: RequestVerb, seq = 1): EnvironmentModifier =>
  spec({ request: { id: `op_${verb}${seq}`, seq, verb } })

/** Judged at its generation, in this phase since so many seconds after its creation, with these conditions. */
export const inPhase =
  (phase: Phase, sinceSeconds = 0, claims: Claims = {}): EnvironmentModifier =>
  made =>
    status({
      phase,
      phaseTransitionTime: isoAfter(sinceSeconds),
      observedGeneration: made.metadata.generation,
      conditions: conditionsOf(claims, undefined, made.metadata.generation, isoAfter(sinceSeconds)),
    })(made)

/** It was ready once. */
export const everReady = status({ everReady: true, resources: FIGURES, image: 'postgres:17.10' })

/** An instance in a state: with data unless it is absent. */
export const instance = (state: InstanceState, fields: Partial<ObservedInstance> = {}): ObservedInstance => ({
  state,
  initialized: state !== 'absent',
  startFailures: 0,
  ...(state === 'absent' ? {} : { endpoint: { host: '127.0.0.1', port: 20001, sslmode: 'disable' } }),
  ...fields,
})

/** What was observed of an environment; by default credentials are there and nothing else was looked at. */
export const observedOf = (
  made: Environment,
  seen: Partial<Omit<Observed, 'environment' | 'wanted' | 'recollection'>> & {
    readonly recollection?: Partial<Recollection>
  } = {},
): Observed => {
  const blankly = { ...blank(made.metadata.uid, 30_000), ...seen.recollection }
  return {
    namespace: undefined,
    instance: undefined,
    credentials: 'present',
    keptRotation: undefined,
    signIn: undefined,
    ...seen,
    environment: made,
    wanted: wantedOf(made, operatorConfig({}).defaults),
    recollection: seen.instance === undefined ? blankly : withObservation(blankly, made, seen.instance),
  }
}

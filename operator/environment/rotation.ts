import type { Environment } from '../../crds/environment.ts'

/** Whether new passwords were asked for that are not known to be in force yet. */
export const isRotationDue = ({ spec, status }: Environment): boolean =>
  spec.credentialsRotation !== undefined && spec.credentialsRotation !== status?.credentialsRotation

/** What Kubernetes' API server refuses in metadata, so that nothing lives on the single box that could not move to a cluster. Pure. */
import type { ObjectMetadata, Violation } from '../../lib/model/resource.ts'

const SUBDOMAIN = /^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$/
const DNS_LABEL = /^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$/
const NAME_PART = /^[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$/
const MAX_SUBDOMAIN = 253
const MAX_ANNOTATIONS_BYTES = 256 * 1024

const isSubdomain = (text: string): boolean => text.length <= MAX_SUBDOMAIN && SUBDOMAIN.test(text)

/** `prefix/name` or `name`. */
const isQualifiedName = (text: string): boolean => {
  const slash = text.indexOf('/')
  return NAME_PART.test(text.slice(slash + 1)) && (slash === -1 || isSubdomain(text.slice(0, slash)))
}

/** Callers that are not type-checked may hand in anything. */
const isText = (value: unknown): value is string => typeof value === 'string'

const isLabelValue = (value: unknown): boolean => isText(value) && (value === '' || NAME_PART.test(value))

/** Judges the parts of metadata that callers give. */
export const metadataViolations = (metadata: ObjectMetadata): readonly Violation[] => {
  const violations: Violation[] = []
  const check = (holds: boolean, field: string, message: string): void => {
    if (!holds) violations.push({ field, message })
  }
  check(isSubdomain(metadata.name), 'metadata.name', 'must be a lowercase DNS name of at most 253 characters')
  check(DNS_LABEL.test(metadata.namespace), 'metadata.namespace', 'must be a lowercase DNS label')
  for (const [key, value] of Object.entries(metadata.labels)) {
    check(isQualifiedName(key), 'metadata.labels', 'has a key that is no qualified name')
    check(isLabelValue(value), 'metadata.labels', 'has a value that is not 63 letters, digits, "-", "_" or "." at most')
  }
  let annotationBytes = 0
  for (const [key, value] of Object.entries(metadata.annotations)) {
    check(isQualifiedName(key.toLowerCase()), 'metadata.annotations', 'has a key that is no qualified name')
    if (!isText(value)) check(false, 'metadata.annotations', 'has a value that is no text')
    else annotationBytes += Buffer.byteLength(key) + Buffer.byteLength(value)
  }
  check(annotationBytes <= MAX_ANNOTATIONS_BYTES, 'metadata.annotations', 'are larger than 256 KiB')
  for (const finalizer of metadata.finalizers)
    check(
      finalizer.includes('/') && isQualifiedName(finalizer),
      'metadata.finalizers',
      'has one that is no qualified name with a prefix',
    )
  return violations
}

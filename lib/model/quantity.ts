/** Kubernetes resource quantities, as far as an environment uses them. */

/** `500m` or `2`: thousandths of a core, or cores. */
export const CPU_QUANTITY = /^([1-9][0-9]{0,5}m|[1-9][0-9]{0,2})$/
/** `256Mi`, `1Gi`: mebibytes or gibibytes. */
export const BYTES_QUANTITY = /^[1-9][0-9]{0,5}(Mi|Gi)$/

/**
 * The bytes of a quantity such as `256Mi`.
 * @throws RangeError when it is not of the form of BYTES_QUANTITY
 */
export const quantityToBytes = (quantity: string): number => {
  if (!BYTES_QUANTITY.test(quantity))
    throw new RangeError(`Cannot read quantity "${quantity}", expected e.g. 256Mi or 1Gi`)
  const factor = quantity.endsWith('Gi') ? 2 ** 30 : 2 ** 20
  return Number.parseInt(quantity, 10) * factor
}

/** Thousandths of a core of a quantity of the form of CPU_QUANTITY. */
export const milliCores = (quantity: string): number =>
  quantity.endsWith('m') ? Number.parseInt(quantity, 10) : Number.parseInt(quantity, 10) * 1000

/** The same in whole cores, of which a part counts as one. */
export const wholeCores = (quantity: string): number => Math.ceil(milliCores(quantity) / 1000)

import { InvalidArgumentError } from 'commander'

/** Creates a parser that accepts an option value only if it is a whole number in the range. */
export function createIntegerOptionParser(min: number, max: number): (text: string) => number {
  return (text) => {
    const value = /^[0-9]{1,9}$/.test(text) ? Number(text) : NaN
    if (value >= min && value <= max) return value
    throw new InvalidArgumentError(`Expected an integer from ${min} to ${max}.`)
  }
}

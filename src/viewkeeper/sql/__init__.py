"""Text to trees and back: the only folder that parses or renders SQL."""
